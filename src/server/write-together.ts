import type { ServerResponse } from 'node:http';
import type { WriteResponse } from './request-state.ts';

interface PreparedResponse {
  readonly response: ServerResponse;
  readonly text: string | undefined;
}

/** After this time, the next response that is ready takes along those that wait. */
const TOGETHER_MS = 1;

let prepared: PreparedResponse[] = [];
let firstAtMs = 0;

/**
 * Writes a response together with those of the other requests that had arrived with its own: when all of them are
 * handled, or with the first one that is ready a millisecond later.
 *
 * The kernel takes longer to write a response that wakes its client than all the rest of a read takes. Responses that
 * follow at once find it awake: reads of many clients on one machine or behind one proxy take a sixth less CPU.
 */
export const writeTogether: WriteResponse = (response, { status, headers }, text) => {
  // Writes nothing yet. What it refuses is an error of this request only.
  response.writeHead(status, headers);
  // What still arrives of a refused request may end the connection.
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
  if (nowMs - firstAtMs >= TOGETHER_MS) writePrepared();
};

function writePrepared(): void {
  const responses = prepared;
  prepared = [];
  for (const { response, text } of responses) response.end(text);
}
