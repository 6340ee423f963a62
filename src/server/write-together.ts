import type { ServerResponse } from 'node:http';
import type { WriteResponse } from './request-state.ts';

interface PreparedResponse {
  readonly response: ServerResponse;
  readonly text: string | undefined;
}

/**
 * The maximum time that a response waits for others. After that, the next response that is ready is written with all
 * waiting ones.
 */
const MAX_WAIT_MS = 1;

let prepared: PreparedResponse[] = [];
let firstAtMs = 0;

/**
 * Writes a response together with the responses to requests that arrived at the same time: when all of them are
 * handled, or with the first response that is ready a millisecond later.
 *
 * Waking the client costs the kernel more than everything else we do for a read. Responses written right after the
 * first one find the client awake. Reads of many clients on one machine or behind one proxy take a sixth less CPU.
 */
export const writeTogether: WriteResponse = (response, { status, headers }, text) => {
  // Only stores the head in the response. An error that it throws belongs to this request only.
  response.writeHead(status, headers);
  // Data of a refused request that is still arriving may end the connection.
  if (!response.req.complete) {
    response.end(text);
    return;
  }
  const nowMs = performance.now();
  if (prepared.length === 0) {
    firstAtMs = nowMs;
    setImmediate(writePrepared);
  }
  prepared.push({ response, text });
  if (nowMs - firstAtMs >= MAX_WAIT_MS) writePrepared();
};

function writePrepared(): void {
  const responses = prepared;
  prepared = [];
  for (const { response, text } of responses) response.end(text);
}
