import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { JsonSchema } from './check-arguments.ts';

/** What a tool returns: JSON, and whether it failed. */
export interface ToolResult {
  readonly content: unknown;
  readonly isError?: boolean;
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  /** Whether it changes nothing. */
  readonly readOnly: boolean;
  run(input: Readonly<Record<string, unknown>>): Promise<ToolResult>;
}

/** The client's request is invalid; reported as a JSON-RPC error. */
export class ProtocolError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = 'ProtocolError';
    this.code = code;
  }
}

interface ServerOptions {
  readonly input: Readable;
  /** Writes one line. */
  readonly write: (line: string) => void;
  readonly tools: readonly Tool[];
  readonly version: string;
  readonly instructions: string;
}

// Newest first. Tools are the same in all of them.
const PROTOCOL_VERSIONS = ['2025-06-18', '2025-03-26', '2024-11-05'];
/** JSON-RPC 2.0 §5.1. */
export const INVALID_PARAMS = -32602;
const [PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INTERNAL_ERROR] = [-32700, -32600, -32601, -32603];
/** A result that fills the context of its reader is of no use. */
const MAX_RESULT_CHARACTERS = 100_000;

interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
}

/**
 * Serves tools by the Model Context Protocol over lines of JSON-RPC 2.0, until the input ends. Requests are answered as
 * they finish.
 *
 * Source: modelcontextprotocol.io/specification/2025-06-18, base protocol, lifecycle and tools.
 */
export async function serveProtocol(options: ServerOptions): Promise<void> {
  const open = new Set<Promise<void>>();
  for await (const line of createInterface({ input: options.input })) {
    if (line.trim() === '') continue;
    const answered = answerLine(line, options).then((response) => {
      if (response !== undefined) options.write(JSON.stringify(response));
      open.delete(answered);
    });
    open.add(answered);
  }
  await Promise.all(open);
}

async function answerLine(line: string, options: ServerOptions): Promise<object | undefined> {
  let message: Message;
  try {
    message = JSON.parse(line);
  } catch {
    return failure(null, PARSE_ERROR, 'expected a line of JSON');
  }
  const isObject = typeof message === 'object' && message !== null;
  if (!isObject || (message.method === undefined && message.id === undefined))
    return failure(null, INVALID_REQUEST, 'expected a JSON-RPC request');
  const { id, method } = message;
  // Notifications have no id; responses have no method, and this server asks nothing.
  if (id === undefined || method === undefined) return undefined;
  const params = (message.params ?? {}) as Record<string, unknown>;
  try {
    return { jsonrpc: '2.0', id, result: await answer(String(method), params, options) };
  } catch (error) {
    if (error instanceof ProtocolError) return failure(id, error.code, error.message);
    return failure(id, INTERNAL_ERROR, (error as Error).message);
  }
}

function failure(id: unknown, code: number, message: string): object {
  return { jsonrpc: '2.0', id, error: { code, message } };
}

function answer(
  method: string,
  params: Readonly<Record<string, unknown>>,
  { tools, version, instructions }: ServerOptions,
): object | Promise<object> {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion:
          PROTOCOL_VERSIONS.find((known) => known === params.protocolVersion) ?? PROTOCOL_VERSIONS[0],
        capabilities: { tools: {} },
        serverInfo: { name: 'custos', version },
        instructions,
      };
    case 'ping':
      return {};
    case 'tools/list':
      return { tools: tools.map(listed) };
    case 'tools/call':
      return callTool(tools, params);
    default:
      throw new ProtocolError(METHOD_NOT_FOUND, `expected a method of this server, got \`${method}\``);
  }
}

function listed({ name, description, inputSchema, readOnly }: Tool): object {
  return { name, description, inputSchema, annotations: { readOnlyHint: readOnly, openWorldHint: false } };
}

async function callTool(
  tools: readonly Tool[],
  { name, arguments: input = {} }: Readonly<Record<string, unknown>>,
): Promise<object> {
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined)
    throw new ProtocolError(INVALID_PARAMS, `expected the name of a tool, got \`${name}\``);
  const { content, isError = false } = await tool.run(input as Record<string, unknown>);
  return { content: [{ type: 'text', text: limited(JSON.stringify(content, undefined, 1)) }], isError };
}

function limited(text: string): string {
  if (text.length <= MAX_RESULT_CHARACTERS) return text;
  return `${text.slice(0, MAX_RESULT_CHARACTERS)}\n… ${text.length - MAX_RESULT_CHARACTERS} characters left out; ask for less`;
}
