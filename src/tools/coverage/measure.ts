import { operations } from '../../generated/operations.ts';
import { createBrand } from '../../server/brand.ts';
import { createRouteIndex } from '../../server/route-index.ts';
import { branchesIn, branchesOf } from '../contract/branches.ts';
import {
  answerName,
  type ContractDocument,
  combinationsOf,
  jsonSchemaOf,
  operationsOf,
  type Schema,
} from '../contract/contract-document.ts';
import type { Exchange } from './archive.ts';

/** The ways in which policies and owners can decide about a request. */
const outcomes = [
  'policy allowed',
  'policy denied_by_rule',
  'policy no_rule_for_method',
  'policy no_rule_matched',
  'quorum met_by_one_key',
  'quorum met_by_several_keys',
  'quorum unsigned',
  'quorum wrong_signature',
  'quorum too_few_signatures',
] as const;

const refusals: Readonly<Record<string, (typeof outcomes)[number]>> = {
  missing_or_empty_authorization_header: 'quorum unsigned',
  zero_correct_authorization_signatures: 'quorum wrong_signature',
  insufficient_correct_authorization_signatures: 'quorum too_few_signatures',
  incorrect_quantity_of_authorization_signatures: 'quorum too_few_signatures',
};

/**
 * Returns what policies and owners decided about a request, as far as the exchange shows it. `prefix` is the word that
 * its client uses in header names in place of `service`.
 */
function outcomesOf(exchange: Exchange, prefix: string): string[] {
  const { status, authorizedBy, allowedBy, policyOutcome, requestHeaders, responseBody } = exchange;
  if (status >= 400) {
    const { code = '' } = (responseBody ?? {}) as { code?: string };
    const refusal = refusals[code];
    const denial =
      code === 'policy_violation' && policyOutcome !== undefined ? [`policy ${policyOutcome}`] : [];
    return [...denial, ...(refusal === undefined ? [] : [refusal])];
  }
  const header = requestHeaders.get(`${prefix}-authorization-signature`);
  // If the sandbox did not record the keys, count the signatures in the header. A header whose value was removed had
  // at least one.
  const keys = authorizedBy.length || (header === undefined ? 0 : header.split(',').length);
  return [
    ...(allowedBy.length > 0 ? ['policy allowed'] : []),
    ...(keys === 1 ? ['quorum met_by_one_key'] : []),
    ...(keys > 1 ? ['quorum met_by_several_keys'] : []),
  ];
}

/** The dimensions of coverage, in the order of the reports. */
export const dimensions = {
  operations: 'operations called',
  statuses: 'statuses of operations',
  errors: 'error codes',
  requests: 'branches of requests',
  responses: 'branches of responses',
  events: 'webhook events sent',
  acknowledged: 'webhook events acknowledged',
  outcomes: 'decisions of policies and quorums',
} as const;

export type Dimension = keyof typeof dimensions;

/** An item of the API document, and how many times it was used. */
export interface Row {
  readonly dimension: Dimension;
  /** A unique name such as `createWallet 400 invalid_data`. */
  readonly name: string;
  /** The `operationId` of an operation's row. Undefined for events and decisions. */
  readonly operation: string | undefined;
  readonly count: number;
}

export interface Measured {
  readonly rows: readonly Row[];
  readonly requests: number;
  /** The number of requests that match no operation of the API document. */
  readonly unknownRequests: number;
  /** The responses that the API document does not describe, and how many times each occurred. */
  readonly undocumented: ReadonlyMap<string, number>;
}

/** How many events of a type were recorded, and how many were acknowledged. */
interface EventCount {
  readonly type: string;
  readonly recorded: number;
  readonly acknowledged: number;
}

/**
 * The recorded requests and events. `eventCounts` comes from a sandbox; without it, events are counted from webhook
 * deliveries among the exchanges.
 */
export interface Recorded {
  readonly exchanges: readonly Exchange[];
  readonly eventCounts?: readonly EventCount[];
}

type Tally = Map<string, number>;

/** Counts which parts of the API document the exchanges use. */
export function measure(document: ContractDocument, { exchanges, eventCounts }: Recorded): Measured {
  const measuring = startMeasuring(document, eventCounts);
  for (const exchange of exchanges) measuring.add(exchange);
  return measuring.finish();
}

/** Measures like `measure`, but one exchange at a time, so that a server can handle other requests in between. */
export function startMeasuring(
  document: ContractDocument,
  eventCounts: Recorded['eventCounts'],
): { add(exchange: Exchange): void; finish(): Measured } {
  const seen: Tally = new Map();
  const undocumented: Tally = new Map();
  const bodies = bodySchemasOf(document);
  const combinations = combinationsOf(document);
  const documented = new Set(combinations.map(({ recordedAs }) => recordedAs));
  const routes = createRouteIndex(Object.values(operations));
  let requests = 0;
  let unknownRequests = 0;
  const add = (branded: Exchange): void => {
    if (isWebhook(branded)) {
      if (eventCounts === undefined) noteDelivery(seen, branded);
      return;
    }
    const prefix = prefixOf(branded);
    const exchange = neutral(branded, prefix);
    const operationId = operationOf(routes, exchange);
    requests += 1;
    if (operationId === undefined) {
      unknownRequests += 1;
      return;
    }
    const answer = answerName(operationId, exchange.status, exchange.responseBody);
    note(documented.has(answer) ? seen : undocumented, answer);
    note(seen, `operation ${operationId}`);
    note(seen, `status ${operationId} ${exchange.status}`);
    noteBranches(seen, document, { operationId, exchange, bodies });
    for (const outcome of outcomesOf(exchange, 'service')) note(seen, outcome);
    if (eventCounts === undefined) for (const { type } of exchange.events) note(seen, `event ${type}`);
  };
  const finish = (): Measured => {
    for (const { type, recorded, acknowledged } of eventCounts ?? []) {
      seen.set(`event ${type}`, recorded);
      seen.set(`acknowledged ${type}`, acknowledged);
    }
    return { rows: rowsOf(document, combinations, seen), requests, unknownRequests, undocumented };
  };
  return { add, finish };
}

function note(tally: Tally, name: string): void {
  tally.set(name, (tally.get(name) ?? 0) + 1);
}

/**
 * Returns whether an exchange is a delivery to a webhook endpoint (Standard Webhooks), as a receiver's archive
 * contains it.
 */
function isWebhook({ method, requestHeaders }: Exchange): boolean {
  return method === 'POST' && requestHeaders.has('webhook-id');
}

function noteDelivery(seen: Tally, { requestBody, status }: Exchange): void {
  const { type } = (requestBody ?? {}) as { type?: unknown };
  if (typeof type !== 'string') return;
  note(seen, `event ${type}`);
  if (status >= 200 && status < 300) note(seen, `acknowledged ${type}`);
}

/** Returns the word that a client uses in place of `service`: the beginning of the name of its header `…-app-id`. */
function prefixOf({ requestHeaders }: Exchange): string {
  for (const name of requestHeaders.keys()) {
    const [, prefix] = /^([a-z][a-z0-9]*)-app-id$/.exec(name) ?? [];
    if (prefix !== undefined) return prefix;
  }
  return 'service';
}

/** Returns the exchange with the client's brand replaced by the names of the API document. */
function neutral(exchange: Exchange, prefix: string): Exchange {
  const brand = createBrand(prefix);
  if (brand === undefined) return exchange;
  return {
    ...exchange,
    path: exchange.path.split('/').map(brand.readParameter).join('/'),
    requestHeaders: new Map(
      Object.entries(brand.readHeaders(Object.fromEntries(exchange.requestHeaders))) as [string, string][],
    ),
    requestBody: brand.readBody(exchange.requestBody),
    responseBody: brand.readBody(exchange.responseBody),
  };
}

function operationOf(routes: ReturnType<typeof createRouteIndex>, exchange: Exchange): string | undefined {
  // The server handles `HEAD` like `GET`.
  const method = exchange.method === 'HEAD' ? 'GET' : exchange.method;
  try {
    return routes.find(method, exchange.path)?.operation.id;
  } catch {
    // The percent-encoding is invalid.
    return undefined;
  }
}

/** The schemas of JSON bodies by `request <operation>` and `response <operation> <status>`. */
type BodySchemas = ReadonlyMap<string, Schema>;

function bodySchemasOf(document: ContractDocument): BodySchemas {
  const schemas = new Map<string, Schema>();
  const add = (name: string, message: unknown): void => {
    const schema = jsonSchemaOf(document, message);
    if (schema !== undefined) schemas.set(name, schema);
  };
  for (const { operation } of operationsOf(document)) {
    add(`request ${operation.operationId}`, operation.requestBody);
    for (const [status, response] of Object.entries(operation.responses)) {
      if (Number(status) < 400) add(`response ${operation.operationId} ${status}`, response);
    }
  }
  return schemas;
}

/** Counts the branches of a request. Only valid requests count. */
function noteBranches(
  seen: Tally,
  document: ContractDocument,
  { operationId, exchange, bodies }: { operationId: string; exchange: Exchange; bodies: BodySchemas },
): void {
  const { status, requestBody, responseBody } = exchange;
  const request = bodies.get(`request ${operationId}`);
  const response = bodies.get(`response ${operationId} ${status}`);
  const { code } = (responseBody ?? {}) as { code?: unknown };
  if (request !== undefined && !(status >= 400 && code === 'invalid_data')) {
    const taken = branchesIn(document, request, { value: requestBody, name: operationId });
    for (const branch of taken) note(seen, `${operationId} request ${branch}`);
  }
  if (response === undefined) return;
  const taken = branchesIn(document, response, { value: responseBody, name: operationId });
  for (const branch of taken) note(seen, `${operationId} response ${branch}`);
}

function rowsOf(
  document: ContractDocument,
  combinations: ReturnType<typeof combinationsOf>,
  seen: Tally,
): Row[] {
  const ids = operationsOf(document).map(({ operation }) => operation.operationId);
  const statuses = [...new Set(combinations.filter(({ kind }) => kind !== 'event').map(statusOf))];
  const types = Object.keys(document.webhooks ?? {});
  const row = (dimension: Dimension, name: string, seenAs = name): Row => {
    const isOfOperation = !['events', 'acknowledged', 'outcomes'].includes(dimension);
    const operation = dimension === 'operations' ? name.split(' ')[1] : name.split(' ')[0];
    return {
      dimension,
      name,
      operation: isOfOperation ? operation : undefined,
      count: seen.get(seenAs) ?? 0,
    };
  };
  return [
    ...ids.map((id) => row('operations', `operation ${id}`)),
    ...statuses.map((status) => row('statuses', status, `status ${status}`)),
    ...combinations
      .filter(({ kind }) => kind === 'error')
      .map(({ name, recordedAs }) => row('errors', name, recordedAs)),
    ...branchRows(document, row),
    ...types.map((type) => row('events', `event ${type}`)),
    ...types.map((type) => row('acknowledged', `acknowledged ${type}`)),
    ...outcomes.map((outcome) => row('outcomes', outcome)),
  ];
}

function statusOf({ name }: { readonly name: string }): string {
  return name.split(' ', 2).join(' ');
}

function branchRows(document: ContractDocument, row: (dimension: Dimension, name: string) => Row): Row[] {
  const named = [...bodySchemasOf(document)].flatMap(([key, schema]) => {
    const [direction = '', operationId = ''] = key.split(' ');
    const branches = branchesOf(document, schema, operationId);
    return branches.map((branch) => `${operationId} ${direction} ${branch}`);
  });
  return [...new Set(named)]
    .map((name) => row(name.split(' ')[1] === 'request' ? 'requests' : 'responses', name))
    .sort((a, b) => (a.dimension < b.dimension ? -1 : a.dimension > b.dimension ? 1 : 0));
}
