import type { Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js';
import { Ajv, type ErrorObject } from 'ajv';
import type { Tool } from './tools.ts';

interface ServerOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly tools: readonly Tool[];
  readonly version: string;
  readonly instructions: string;
  /** Called for input that is not a message of the protocol. */
  readonly onError: (error: Error) => void;
}

/** The maximum length of a result. A longer result would fill the context of the model that reads it. */
const MAX_RESULT_CHARACTERS = 100_000;

/** Serves tools by the Model Context Protocol until the input ends and every call has been answered. */
export async function serveTools(options: ServerOptions): Promise<void> {
  const { input, output, tools, version, instructions, onError } = options;
  const server = new Server({ name: 'custos', version }, { capabilities: { tools: {} }, instructions });
  const callTool = toolCaller(tools);
  const calls = new Set<Promise<CallToolResult>>();
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.map(listed) }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    const call = callTool(params.name, params.arguments ?? {});
    calls.add(call);
    return call.finally(() => calls.delete(call));
  });
  server.onerror = onError;
  const closed = new Promise<void>((resolve) => {
    server.onclose = resolve;
  });
  await server.connect(new StdioServerTransport(input, output));
  await Promise.race([finished(input, { writable: false }), closed]);
  // The SDK starts handlers and writes results in microtasks. Turns of the event loop before and after the wait let
  // them run.
  await nextTurn();
  await Promise.allSettled(calls);
  await nextTurn();
  await server.close();
}

function listed({ name, description, inputSchema, readOnly }: Tool) {
  const annotations = { readOnlyHint: readOnly, openWorldHint: false };
  return { name, description, inputSchema, annotations };
}

/**
 * Returns the function that calls tools. For an unknown tool, it throws an error of the protocol. For wrong
 * arguments, it returns an error as a result, so that the model can correct them.
 */
function toolCaller(tools: readonly Tool[]) {
  const ajv = new Ajv({ allErrors: true });
  const callable = new Map(
    tools.map((tool) => [tool.name, { tool, isValid: ajv.compile(tool.inputSchema) }] as const),
  );
  return async (name: string, input: Record<string, unknown>): Promise<CallToolResult> => {
    const found = callable.get(name);
    if (found === undefined) {
      const names = [...callable.keys()].join(', ');
      throw new McpError(ErrorCode.InvalidParams, `expected one of ${names}, got \`${name}\``);
    }
    const { tool, isValid } = found;
    if (!isValid(input)) {
      return resultOf({ error: (isValid.errors ?? []).map(faultOf).join('; ') }, true);
    }
    const { content, isError = false } = await tool.run(input);
    return resultOf(content, isError);
  };
}

function faultOf({ instancePath, message, params }: ErrorObject): string {
  const detail = params.additionalProperty ?? params.allowedValues?.join(', ');
  const place = instancePath === '' ? 'arguments' : instancePath.slice(1);
  return `${place}: ${message}${detail === undefined ? '' : `: ${detail}`}`;
}

function resultOf(content: unknown, isError: boolean): CallToolResult {
  return { content: [{ type: 'text', text: limited(JSON.stringify(content, undefined, 1)) }], isError };
}

function limited(text: string): string {
  if (text.length <= MAX_RESULT_CHARACTERS) return text;
  return `${text.slice(0, MAX_RESULT_CHARACTERS)}\n… ${text.length - MAX_RESULT_CHARACTERS} characters left out; ask for less`;
}
