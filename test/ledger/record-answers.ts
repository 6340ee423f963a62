import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';

// Records what every server of this process answers, whatever client asked: Node announces each request of each HTTP
// server on a diagnostics channel. Test workers load this file, and so does every process they start, as plain
// JavaScript: it imports nothing of ours. Outside a test run (no `TEST_LEDGER`) it records nothing.

/** Method, path template and operationId, as the global setup writes them to `routes.json`. */
export type Route = readonly [method: string, template: string, operationId: string];

interface Pattern {
  readonly operationId: string;
  /** Undefined where the template has a parameter. */
  readonly segments: readonly (string | undefined)[];
}

/** Commands whose servers answer with examples, or with what another server answered. */
const answersForOthers = ['mock', 'verify'];

const recorded = new Set<string>();
const triggered = new Set<string>();
let patterns: Map<string, Pattern[]> | undefined;
let isPaused = false;

/**
 * Adds one line to the ledger of the running test file: `createWallet 200`, `createWallet 400 invalid_data`,
 * `event wallet.created`. Written at once, so that it survives a process that is killed.
 */
export function record(combination: string): void {
  const { TEST_LEDGER: folder, TEST_LEDGER_FILE: file = '' } = process.env;
  const line = `${file}\t${combination}\n`;
  if (folder === undefined || isPaused || recorded.has(line)) return;
  recorded.add(line);
  appendFileSync(join(folder, `${process.pid}.tsv`), line);
}

/** Records an answer by its operation; `body` is the parsed response. */
export function recordAnswer(operationId: string, status: number, body: unknown): void {
  const code = status < 400 ? undefined : (body as { code?: unknown } | undefined)?.code;
  record(`${operationId} ${status}${typeof code === 'string' ? ` ${code}` : ''}`);
}

/**
 * Begins with the next test file: records again if the last one paused it, and forgets the ids of its events. Modules
 * outlive the test file that loaded them, and two files with the same seed have events with the same ids.
 */
export function startRecording(): void {
  isPaused = false;
  triggered.clear();
}

/** Leaves out this test file: its servers answer without running the operations, or it makes the events itself. */
export function pauseRecording(): void {
  isPaused = true;
}

/** Ids of the events that this test file asked to make up: the operation they report never ran. */
export function triggeredEventIds(): readonly string[] {
  return [...triggered];
}

subscribe('http.server.request.start', (message) => {
  const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
  const [path = ''] = (request.url ?? '').split('?');
  const { method = '' } = request;
  if (method === 'POST' && path === '/_sandbox/events') {
    onBody(response, (body) => void triggered.add(String((body as { id?: unknown }).id)));
    return;
  }
  const operationId = operationOf(method, path);
  if (operationId !== undefined) {
    onBody(response, (body) => recordAnswer(operationId, response.statusCode, body));
  }
});

/** Calls `read` with the parsed body when the response ends; a body is written with the end or not at all. */
function onBody(response: ServerResponse, read: (body: unknown) => void): void {
  const end = response.end;
  response.end = ((...given: Parameters<typeof end>) => {
    const [text] = given as unknown[];
    const isNeeded = response.statusCode >= 400 || response.req.url?.startsWith('/_sandbox/');
    // A fault rule may send a text.
    read(isNeeded && typeof text === 'string' && /^[{[]/.test(text) ? JSON.parse(text) : {});
    return end.apply(response, given);
  }) as typeof end;
}

function operationOf(method: string, path: string): string | undefined {
  // Operations under `/v1` are answered under `/api/v1` as well.
  const segments = segmentsOf(path.startsWith('/api/v1/') ? path.slice('/api'.length) : path);
  return patternsFor(method, segments.length).find((pattern) =>
    pattern.segments.every((segment, index) => segment === undefined || segment === segments[index]),
  )?.operationId;
}

function patternsFor(method: string, length: number): readonly Pattern[] {
  patterns ??= readPatterns();
  return patterns.get(`${method} ${length}`) ?? [];
}

function readPatterns(): Map<string, Pattern[]> {
  const read = new Map<string, Pattern[]>();
  const { TEST_LEDGER: folder } = process.env;
  if (folder === undefined || answersForOthers.includes(process.argv[2] ?? '')) return read;
  const routes = JSON.parse(readFileSync(join(folder, 'routes.json'), 'utf8')) as Route[];
  // `{` sorts behind every letter: `/users/search` is tried before `/users/{user_id}`.
  for (const [method, template, operationId] of routes.sort(([, a], [, b]) => (a < b ? -1 : 1))) {
    const segments = segmentsOf(template).map((segment) => (segment.startsWith('{') ? undefined : segment));
    const key = `${method} ${segments.length}`;
    read.set(key, [...(read.get(key) ?? []), { operationId, segments }]);
  }
  return read;
}

function segmentsOf(path: string): string[] {
  return path.replace(/\/$/, '').split('/');
}
