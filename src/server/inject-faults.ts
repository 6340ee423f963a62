import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../errors.ts';
import type { Why } from '../ports/refusals.ts';
import type { FindRequestFault, RequestFault } from '../ports/requests.ts';
import { type Answer, operationOf, type RequestState, type WriteResponse } from './request-state.ts';

export interface FaultOptions {
  readonly find: FindRequestFault;
  /** Returns whether all rules spare a request, as they spare those of the inspector. */
  readonly isSpared: (request: IncomingMessage) => boolean;
  /** Aborted when the server stops; ends all delays. */
  readonly stopping: AbortSignal;
}

/** The number of parts of a slow body. */
const SLOW_PARTS = 10;

/**
 * Returns a step that applies the rules of the sandbox to a request: it delays or refuses the request, or breaks its
 * response.
 *
 * CHOICE: delays are in real time, even with a frozen clock, because clients' timeouts are in real time. Faults are
 * injected after the credentials and the form of a request have been checked, so a client with a wrong secret still
 * gets that error.
 */
export function faultInjector({ find, isSpared, stopping }: FaultOptions) {
  return async (state: RequestState): Promise<void> => {
    if (isSpared(state.request)) return;
    const fault = find({
      operation: operationOf(state).id,
      appId: state.app?.id,
      target: state.target,
      rawBody: state.rawBody,
    });
    if (fault !== undefined) await inject(fault, state, stopping);
  };
}

async function inject(fault: RequestFault, state: RequestState, stopping: AbortSignal): Promise<void> {
  switch (fault.effect) {
    case 'latency':
      state.injected = { why: whyOf(fault, 'delayed the request'), isOutcome: false };
      // Delay the request before it holds a database connection.
      await pause(fault.delayMs, state.response, stopping);
      if (state.response.destroyed) {
        const what = 'delayed the request, and the client closed the connection first; nothing was executed';
        state.injected = { why: whyOf(fault, what), isOutcome: true, isCut: true };
      }
      return;
    case 'error':
      state.injected = { why: whyOf(fault, 'injected this error'), isOutcome: true };
      throw new ApiError(fault.code, fault.message, fault.data === undefined ? {} : { data: fault.data });
    case 'rate_limit':
      state.injected = { why: whyOf(fault, 'injected this error'), isOutcome: true };
      throw new ApiError('too_many_requests', undefined, {
        headers: { 'retry-after': String(fault.retryAfterSeconds) },
      });
    case 'respond': {
      const answer = answerOf(fault);
      state.injected = { why: whyOf(fault, 'sent this response'), isOutcome: true, answer };
      throw new ApiError('unavailable', 'a fault rule sends the response');
    }
    case 'cut_before_commit':
      state.injected = cut(fault, 'cut the connection; nothing was stored');
      throw new ApiError('unavailable', 'the connection was cut');
    case 'cut_after_commit':
      state.injected = cut(fault, 'cut the connection after the request was executed');
      return;
    case 'truncated_body':
      state.injected = {
        why: whyOf(fault, 'cut the connection within the response'),
        isOutcome: false,
        write: writeHalf,
      };
      return;
    case 'slow_body':
      state.injected = {
        why: whyOf(fault, 'slowed the response down'),
        isOutcome: false,
        write: slowly(fault.delayMs, stopping),
      };
  }
}

/** Returns the response of a rule. Names of headers are in lower case, so that they replace those of the server. */
function answerOf({ status, headers, body }: Extract<RequestFault, { effect: 'respond' }>): Answer {
  const own = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  const answer = { status, headers: Object.fromEntries(own) };
  if (typeof body === 'string') return { ...answer, text: body, fileType: 'text/plain' };
  return body === undefined ? answer : { ...answer, body };
}

function whyOf({ ruleId, effect, ...details }: RequestFault, what: string): Why {
  const delay = 'delayMs' in details ? { delay_ms: details.delayMs } : {};
  const text = `The fault rule \`${ruleId}\` ${what}.`;
  const step = `Run \`custos faults clear ${ruleId}\` to remove the rule, or test how your client reacts.`;
  return {
    kind: 'fault',
    hint: `${text} ${step}`,
    evidence: { fault_id: ruleId, effect, ...delay },
    problems: [
      {
        subject: 'the response',
        expected: 'the response of the operation',
        came: `the effect \`${effect}\` of the fault rule \`${ruleId}\``,
        at_fault: null,
        ...{ text, next_step: step },
      },
    ],
    repairs: [
      { kind: 'call', title: 'Remove the fault rule', operation: 'removeFault', path: { fault_id: ruleId } },
      { kind: 'repeat', title: 'Send the request again', repeat: {} },
    ],
  };
}

function cut(fault: RequestFault, what: string): NonNullable<RequestState['injected']> {
  return {
    why: whyOf(fault, what),
    isOutcome: true,
    isCut: true,
    write: (response) => void response.destroy(),
  };
}

/** Resolves after the delay, or earlier when the client disconnects or the server stops. */
function pause(delayMs: number, response: ServerResponse, stopping: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      response.off('close', finish);
      stopping.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, delayMs);
    response.once('close', finish);
    stopping.addEventListener('abort', finish);
    if (stopping.aborted || response.destroyed) finish();
  });
}

/**
 * Sends half of the body, then closes the connection.
 *
 * CHOICE: a response without a body cannot be truncated, so its connection is closed without a response.
 */
const writeHalf: WriteResponse = (response, { status, headers }, text) => {
  if (text === undefined) {
    response.destroy();
    return;
  }
  const bytes = Buffer.from(text);
  response.writeHead(status, headers);
  response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => response.destroy());
};

/** Returns a writer that sends the head immediately, and then equal parts of the body with pauses in between. */
function slowly(delayMs: number, stopping: AbortSignal): WriteResponse {
  return (response, { status, headers }, text = '') => {
    const bytes = Buffer.from(text);
    const size = Math.max(1, Math.ceil(bytes.length / SLOW_PARTS));
    response.writeHead(status, headers);
    response.flushHeaders();
    const writeFrom = async (start: number): Promise<void> => {
      await pause(delayMs / SLOW_PARTS, response, stopping);
      if (response.destroyed) return;
      const end = stopping.aborted ? bytes.length : start + size;
      response.write(bytes.subarray(start, end));
      if (end >= bytes.length) response.end();
      else await writeFrom(end);
    };
    void writeFrom(0);
  };
}
