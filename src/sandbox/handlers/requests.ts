import { countEvents } from '../../domain/access/webhooks/webhook-deliveries.ts';
import { ApiError, notFound } from '../../errors.ts';
import type { AnsweredRequest } from '../../ports/requests.ts';
import type { ControlContext, Handler } from '../control-plane.ts';
import type { PolicyTrace, RecordedExchange } from '../generated/schemas.ts';
import { policyTrace } from '../policy-trace.ts';
import { followRequests, latestRequests } from '../requests/follow-requests.ts';
import { httpArchiveOf } from '../requests/http-archive.ts';
import {
  contractCallsIn,
  eventsOf,
  type MeasuredCoverage,
  requestDetails,
  requestSummaries,
  requireLog,
  sentRequest,
} from '../requests/request-view.ts';

export const listRequests: Handler<'listRequests'> = ({ query }, context) =>
  followRequests(query, { log: requireLog(context.requests), read: context.read, signal: context.signal });

export const sendRequest: Handler<'sendRequest'> = async ({ body }, { ownApi, redaction, signal }) => {
  const { operation, path = {}, query = {}, headers = {}, sign_as: signAs = [] } = body;
  const call = { operation, path, query, headers, signAs, isRecorded: body.is_recorded !== false };
  return sentRequest(await ownApi.call({ ...call, body: body.body }, signal), operation, redaction);
};

export const deleteRequests: Handler<'deleteRequests'> = async (_input, { requests }) => ({
  deleted: requireLog(requests).clear(),
});

/** Returns the trace of a request's policy decision, or null if a reset has deleted it. */
async function traceOf(requestId: string, context: ControlContext): Promise<PolicyTrace | null> {
  try {
    return await policyTrace(requestId, context);
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_found') return null;
    throw error;
  }
}

/** Decodes the calls in a request body, by the sandbox's own interfaces and by uploaded ones. */
async function contractCallsOf(
  { rawBody }: Pick<AnsweredRequest, 'rawBody'>,
  body: unknown,
  { chains }: ControlContext,
): Promise<RecordedExchange['contract_calls']> {
  // Reading the interfaces opens the store of the chains, which most requests do not need.
  const mayHaveCalls = Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.length).includes('"data"');
  if (!mayHaveCalls) return [];
  const abis = await chains.abis();
  return contractCallsIn(body, (to, data) => abis.call(to, data));
}

export const getRequest: Handler<'getRequest'> = async ({ path }, context) => {
  const log = requireLog(context.requests);
  const found = log.find(path.request_id);
  if (found === undefined) throw notFound('Request');
  const { answered } = found;
  const [summary] = await requestSummaries([answered], { log, read: context.read });
  const details = requestDetails(answered, context.redaction);
  return {
    ...summary!,
    ...details,
    events: await eventsOf(answered, details.events, context),
    contract_calls: await contractCallsOf(answered, details.request.body, context),
    policy_trace: answered.code === 'policy_violation' ? await traceOf(answered.id, context) : null,
  };
};

export const replayRequest: Handler<'replayRequest'> = async ({ path, body }, context) => {
  const found = requireLog(context.requests).find(path.request_id);
  if (found === undefined) throw notFound('Request');
  const { answered } = found;
  const at = { nowMs: context.clock.now(), signal: context.signal };
  const response = await context.ownApi.repeat(answered, body, at);
  return sentRequest(response, answered.operation, context.redaction);
};

export const signIntent: Handler<'signIntent'> = async (
  { path, body },
  { ownApi, redaction, clock, signal },
) => {
  const response = await ownApi.signIntent(path.intent_id, body.sign_as, { nowMs: clock.now(), signal });
  return sentRequest(response, 'authorizeIntent', redaction);
};

const DEFAULT_LIMIT = 1000;

export const exportRequests: Handler<'exportRequests'> = ({ query }, context) => {
  const { redaction, baseUrl, version } = context;
  const found = latestRequests(requireLog(context.requests), query, query.limit ?? DEFAULT_LIMIT);
  return httpArchiveOf(found, { redaction, origin: baseUrl(), version });
};

/** As many requests as the log can store, so that the coverage counts all of them. */
const MAX_REQUESTS = 10_000;

function operationsOf(rows: MeasuredCoverage['rows']) {
  type Sum = { requests: number; covered: number; total: number; statuses: Record<string, number> };
  const found = new Map<string, Sum>();
  for (const { dimension, operation, name, count } of rows) {
    if (operation === undefined) continue;
    const sum = found.get(operation) ?? { requests: 0, covered: 0, total: 0, statuses: {} };
    if (dimension === 'statuses') sum.statuses[name.slice(operation.length + 1)] = count;
    if (dimension === 'operations') sum.requests = count;
    else {
      sum.total += 1;
      if (count > 0) sum.covered += 1;
    }
    found.set(operation, sum);
  }
  return [...found].map(([operation, sum]) => ({ operation, ...sum }));
}

export const measureCoverage: Handler<'measureCoverage'> = async ({ query }, context) => {
  const { redaction, baseUrl, version, requests: log, read } = context;
  const recorded = latestRequests(requireLog(log), {}, MAX_REQUESTS);
  const archive = await httpArchiveOf(recorded, { redaction, origin: baseUrl(), version });
  const measured = await context.measureCoverage(archive.log.entries, await read(countEvents));
  const { requests, unknownRequests, undocumented, figures, rows } = measured;
  return {
    requests,
    unknown_requests: unknownRequests,
    undocumented: [...undocumented],
    figures: [...figures],
    operations: operationsOf(rows),
    rows: rows
      .filter(({ operation }) => operation === query.operation)
      .map(({ dimension, name, count }) => ({ dimension, name, count })),
  };
};
