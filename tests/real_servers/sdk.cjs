// A server on the official TypeScript SDK. `NODE_PATH` says where that is installed, which only
// CommonJS heeds. `sdk.py` is its twin: whatever a test asks of one, it asks of the other.
//
// The argument, if there is one, is how a legacy client is met: `serve` or `reject`.
const {
    McpServer,
    ResourceTemplate,
    acceptedContent,
    inputRequired,
    inputResponse,
} = require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");
const { z } = require("zod");

const text = (text) => ({ content: [{ type: "text", text }] });
const form = (message, member) =>
    inputRequired.elicit({ message, requestedSchema: z.object({ [member]: z.string() }) });

// A state that comes back only if nobody reads it, trims it, or writes it anew.
const STATE = ' {"é" : "\u{1f980}\u2028"}\t\u00a0';

function greet({ greeting }, { mcpReq }) {
    const name = acceptedContent(mcpReq.inputResponses, "name")?.name;
    const colour = acceptedContent(mcpReq.inputResponses, "colour")?.colour;
    const state = mcpReq.requestState();
    if (colour !== undefined) {
        // The name came a round ago and is not repeated.
        const [kept, rest] = [state.slice(0, STATE.length), state.slice(STATE.length)];
        const ok = kept === STATE && name === undefined;
        return text(ok ? `${greeting}, ${rest}, who likes ${colour}!` : `not my state: ${state}`);
    }
    if (name !== undefined) {
        return inputRequired({
            inputRequests: { colour: form(`Which colour, ${name}?`, "colour") },
            requestState: state === STATE ? STATE + name : "lost",
        });
    }
    const answer = inputResponse(mcpReq.inputResponses, "name");
    if (answer.kind === "elicit") {
        return text(`nobody to greet: ${answer.action}`);
    }
    return inputRequired({
        inputRequests: { name: form("Your name?", "name") },
        requestState: STATE,
    });
}

function gather(_, { mcpReq }) {
    const answers = mcpReq.inputResponses;
    if (answers === undefined) {
        return inputRequired({
            inputRequests: {
                name: form("Your name?", "name"),
                model: inputRequired.createMessage({
                    messages: [{ role: "user", content: { type: "text", text: "2 + 2?" } }],
                    maxTokens: 7,
                    systemPrompt: "Be brief.",
                }),
                roots: inputRequired.listRoots(),
            },
        });
    }
    const { name } = acceptedContent(answers, "name");
    const { model, content } = inputResponse(answers, "model").result;
    const roots = inputResponse(answers, "roots").roots.map((root) => root.uri);
    return text(`${name}; ${content.text} by ${model}; ${roots}`);
}

// Asks for nothing and twice for patience.
function later(_, { mcpReq }) {
    const rounds = Number(mcpReq.requestState() ?? 0);
    const clean = mcpReq.inputResponses === undefined;
    return rounds < 2 ? inputRequired({ requestState: `${rounds + 1}` }) : text(`${clean}`);
}

async function work({ steps }, { mcpReq }) {
    const progressToken = mcpReq._meta?.progressToken;
    for (let step = 1; step <= steps; step += 1) {
        await mcpReq.log("info", { step }, "worker");
        await mcpReq.log("debug", null, "worker");
        if (progressToken !== undefined) {
            const [progress, total] = [step / 2, steps / 2];
            const params = { progressToken, progress, total, message: `step ${step}` };
            await mcpReq.notify({ method: "notifications/progress", params });
        }
    }
    return text(`${steps} steps`);
}

let cancelled = 0;

// Never ends by itself.
async function wait(_, { mcpReq }) {
    const progressToken = mcpReq._meta.progressToken;
    const params = { progressToken, progress: 1 };
    await mcpReq.notify({ method: "notifications/progress", params });
    await new Promise((resolve) => mcpReq.signal.addEventListener("abort", resolve));
    cancelled += 1;
    return text("cancelled");
}

function visit(_, { mcpReq }) {
    const page = inputResponse(mcpReq.inputResponses, "page");
    if (page.kind !== "elicit") {
        const url = "https://example.com/ü?a=b";
        const page = inputRequired.elicitUrl({ message: "Go.", url });
        return inputRequired({ inputRequests: { page } });
    }
    return text(`${page.action} ${page.content}`);
}

function letter({ to }, { mcpReq }) {
    const name = acceptedContent(mcpReq.inputResponses, "name")?.name;
    if (name === undefined) {
        return inputRequired({ inputRequests: { name: form("Who signs?", "name") } });
    }
    const content = { type: "text", text: `Dear ${to}, yours ${name}` };
    return { description: "A letter", messages: [{ role: "user", content }] };
}

function note(uri, { id }, { mcpReq }) {
    const name = acceptedContent(mcpReq.inputResponses, "name")?.name;
    if (name === undefined) {
        return inputRequired({ inputRequests: { name: form("Who reads?", "name") } });
    }
    const text = `note ${id} for ${name}`;
    return { contents: [{ uri: uri.href, mimeType: "text/plain", text }] };
}

function add({ a, b }) {
    const structuredContent = { sum: a + b };
    return { ...text(JSON.stringify(structuredContent)), structuredContent };
}

function factory() {
    const capabilities = { logging: {} };
    const server = new McpServer({ name: "sdk", title: "SDK", version: "1.2.3" }, { capabilities });
    const numbers = z.object({ a: z.number(), b: z.number() });
    const sum = z.object({ sum: z.number() });
    server.registerTool("add", { inputSchema: numbers, outputSchema: sum }, add);
    server.registerTool("greet", { inputSchema: z.object({ greeting: z.string() }) }, greet);
    server.registerTool("gather", { inputSchema: z.object({}) }, gather);
    server.registerTool("later", { inputSchema: z.object({}) }, later);
    server.registerTool("work", { inputSchema: z.object({ steps: z.number() }) }, work);
    server.registerTool("wait", { inputSchema: z.object({}) }, wait);
    server.registerTool("cancelled", { inputSchema: z.object({}) }, () => text(`${cancelled}`));
    server.registerTool("visit", { inputSchema: z.object({}) }, visit);
    server.registerPrompt("letter", { argsSchema: z.object({ to: z.string() }) }, letter);
    const notes = new ResourceTemplate("note://{id}", { list: undefined });
    server.registerResource("note", notes, {}, note);
    return server;
}

serveStdio(factory, { legacy: process.argv[2] });
