"""A server on the official Python SDK. `sdk.cjs` is its twin: whatever a test asks of one, it asks
of the other."""

from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

server = MCPServer("sdk", title="SDK", version="1.2.3")


class Sum(BaseModel):
    sum: float


class Name(BaseModel):
    name: str


class Colour(BaseModel):
    colour: str


def ask_name() -> Elicit[Name]:
    return Elicit("Your name?", Name)


def ask_colour(name: Annotated[Name, Resolve(ask_name)]) -> Elicit[Colour]:
    return Elicit(f"Which colour, {name.name}?", Colour)


def ask_model() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="2 + 2?"))
    return Sample([question], max_tokens=7, system_prompt="Be brief.")


def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool(structured_output=True)
def add(a: float, b: float) -> Sum:
    return Sum(sum=a + b)


@server.tool(structured_output=False)
def greet(
    greeting: str,
    name: Annotated[Name, Resolve(ask_name)],
    colour: Annotated[Colour, Resolve(ask_colour)],
) -> str:
    return f"{greeting}, {name.name}, who likes {colour.colour}!"


@server.tool(structured_output=False)
def gather(
    name: Annotated[Name, Resolve(ask_name)],
    model: Annotated[CreateMessageResult, Resolve(ask_model)],
    roots: Annotated[ListRootsResult, Resolve(ask_roots)],
) -> str:
    uris = ",".join(str(root.uri) for root in roots.roots)
    return f"{name.name}; {model.content.text} by {model.model}; {uris}"


@server.tool(structured_output=False)
def later(ctx: Context) -> str | InputRequiredResult:
    """Asks for nothing and twice for patience."""
    rounds = int(ctx.request_state or 0)
    if rounds < 2:
        return InputRequiredResult(request_state=str(rounds + 1))
    return "true" if ctx.input_responses is None else "false"


@server.tool(structured_output=False)
async def work(steps: int, ctx: Context) -> str:
    for step in range(1, steps + 1):
        await ctx.info({"step": step}, logger_name="worker")
        await ctx.debug(None, logger_name="worker")
        await ctx.report_progress(step / 2, steps / 2, f"step {step}")
    return f"{steps} steps"


cancelled_calls = 0


@server.tool(structured_output=False)
async def wait(ctx: Context) -> str:
    """Never ends by itself."""
    global cancelled_calls
    await ctx.report_progress(1)
    try:
        await anyio.sleep_forever()
    finally:
        cancelled_calls += 1


@server.tool(structured_output=False)
def cancelled() -> str:
    return str(cancelled_calls)


@server.tool(structured_output=False)
def visit(ctx: Context) -> str | InputRequiredResult:
    page = (ctx.input_responses or {}).get("page")
    if isinstance(page, ElicitResult):
        return f"{page.action} {page.content}"
    page = ElicitRequestURLParams(message="Go.", url="https://example.com/ü?a=b")
    return InputRequiredResult(input_requests={"page": ElicitRequest(params=page)})


def answered(ctx: Context, message: str) -> str | InputRequiredResult:
    """The name that the client has filled in, or the question for it."""
    answer = (ctx.input_responses or {}).get("name")
    if isinstance(answer, ElicitResult):
        return str(answer.content["name"])
    form = ElicitRequestFormParams(
        message=message,
        requested_schema={"type": "object", "properties": {"name": {"type": "string"}}},
    )
    return InputRequiredResult(input_requests={"name": ElicitRequest(params=form)})


@server.prompt(description="A letter")
def letter(to: str, ctx: Context) -> str | InputRequiredResult:
    name = answered(ctx, "Who signs?")
    return f"Dear {to}, yours {name}" if isinstance(name, str) else name


@server.resource("note://{id}", name="note", mime_type="text/plain")
def note(id: str, ctx: Context) -> str | InputRequiredResult:
    name = answered(ctx, "Who reads?")
    return f"note {id} for {name}" if isinstance(name, str) else name


server.run()
