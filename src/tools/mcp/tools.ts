import { ConfigError } from '../../config/config.ts';
import {
  buildRequest,
  type CallableOperation,
  type CallHeaders,
  type CallInput,
  findOperation,
  pathParametersOf,
  seededKey,
} from '../client/call-operation.ts';
import type { SandboxClient } from '../client/sandbox-client.ts';
import { type Contract, openContract } from './search-contract.ts';

/** The result of a tool: JSON content, and whether the tool failed. */
interface ToolResult {
  readonly content: unknown;
  readonly isError?: boolean;
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  /** The JSON Schema of the arguments. */
  readonly inputSchema: {
    readonly type: 'object';
    readonly properties: Record<string, PropertySchema>;
    readonly required: string[];
    readonly additionalProperties: false;
  };
  /** Whether the tool changes nothing in the sandbox. */
  readonly readOnly: boolean;
  /** Runs the tool. The arguments must match `inputSchema`. */
  run(input: Readonly<Record<string, unknown>>): Promise<ToolResult>;
}

interface PropertySchema {
  readonly type: 'string' | 'integer' | 'boolean' | 'array' | 'object';
  readonly description: string;
  readonly items?: { readonly type: 'string' };
  readonly enum?: readonly string[];
}

type Input = Readonly<Record<string, unknown>>;

interface Definition {
  readonly name: string;
  readonly description: string;
  readonly readOnly: boolean;
  readonly properties: Record<string, PropertySchema>;
  readonly required?: string[];
  run(input: Input, contract: () => Contract): ToolResult | Operation;
}

/** The operation that a tool calls. Most tools call one operation. */
interface Operation {
  readonly operation: string;
  readonly path?: Input;
  readonly query?: Input;
  readonly body?: unknown;
  readonly signers?: readonly string[];
  readonly idempotencyKey?: string;
  readonly expiresInMs?: number;
}

const DEFAULT_LIMIT = 20;

const text = (description: string): PropertySchema => ({ type: 'string', description });
const integer = (description: string): PropertySchema => ({ type: 'integer', description });
const object = (description: string): PropertySchema => ({ type: 'object', description });
const texts = (description: string): PropertySchema => ({
  ...{ type: 'array', items: { type: 'string' }, description },
});

const definitions: readonly Definition[] = [
  {
    name: 'search_contract',
    description:
      'Finds operations of the API and of the sandbox control plane by words, such as `policy create` or `clock`.',
    readOnly: true,
    properties: { query: text('Words to look for.'), limit: integer('At most so many; 20 by default.') },
    required: ['query'],
    run: ({ query, limit = DEFAULT_LIMIT }, contract) => ({
      content: contract().search(String(query), Number(limit)),
    }),
  },
  {
    name: 'describe_operation',
    description: 'Shows the parameters, example bodies, responses and errors of an operation.',
    readOnly: true,
    properties: { operation: text('The operationId, such as `walletRpc`.') },
    required: ['operation'],
    run: ({ operation }, contract) => ({
      content: contract().describe(findOperation(String(operation)).id),
    }),
  },
  {
    name: 'call_operation',
    description:
      'Calls an operation with the credentials of the sandbox app, signed as seeded users if `sign_as` is given. ' +
      'A refusal contains a hint; `explain_request` says more.',
    readOnly: false,
    properties: {
      operation: text(
        'The operationId, such as `walletRpc`, or one of the control plane, such as `fundAddress`.',
      ),
      path_parameters: object('Values by name, such as {"wallet_id": "ext_wal_alice"}.'),
      query: object('Query parameters by name.'),
      body: object('The JSON body.'),
      sign_as: texts('Seeded users whose keys sign the request: alice, bob, carol.'),
      idempotency_key: text('Responds to a repetition with the first response.'),
      expires_in_ms: integer('Refuses the request after this time, by the clock of the sandbox.'),
    },
    required: ['operation'],
    run: (input) => ({
      operation: String(input.operation),
      path: (input.path_parameters ?? {}) as Input,
      query: (input.query ?? {}) as Input,
      body: input.body,
      signers: (input.sign_as ?? []) as string[],
      ...(input.idempotency_key === undefined ? {} : { idempotencyKey: String(input.idempotency_key) }),
      ...(input.expires_in_ms === undefined ? {} : { expiresInMs: Number(input.expires_in_ms) }),
    }),
  },
  {
    name: 'explain_request',
    description:
      'Explains a request to the sandbox: what was sent and answered, whose signatures counted, how policies ' +
      'decided, what it caused, and why it was refused.',
    readOnly: true,
    properties: { request_id: text('The `request_id` of a call, or the x-request-id of a response.') },
    required: ['request_id'],
    run: ({ request_id }) => ({ operation: 'getRequest', path: { request_id } }),
  },
  {
    name: 'list_requests',
    description: 'Lists the recorded requests to the sandbox, oldest first, with the hint of each refusal.',
    readOnly: true,
    properties: {
      operation: texts('Only these operationIds.'),
      status: text('Only this status: such as `404` or `4xx`, `0` for a cut connection, or `failed`.'),
      code: text('Only refusals with this error code.'),
      wallet: text('Only requests about this wallet id.'),
      after: text('`start`, `now`, a request id or the `cursor` of a response. Default: `start`.'),
      limit: integer('At most so many; 20 by default.'),
      wait_ms: integer('Waits so long for a request if there is none; at most 30000.'),
    },
    run: (query) => ({ operation: 'listRequests', query: { limit: DEFAULT_LIMIT, ...query } }),
  },
  {
    name: 'list_events',
    description: 'Lists the webhook events of the sandbox, oldest first, with their payloads.',
    readOnly: true,
    properties: {
      type: texts('Types or patterns, such as `wallet.*`.'),
      where: texts('Conditions `path=value` on the payload.'),
      after: text('`start`, `now`, an event id or the `cursor` of a response. Default: `start`.'),
      limit: integer('At most so many; 20 by default.'),
      wait_ms: integer('Waits so long for an event if there is none; at most 30000.'),
    },
    run: (query) => ({ operation: 'listEvents', query: { limit: DEFAULT_LIMIT, ...query } }),
  },
  {
    name: 'clock',
    description:
      'Reads the clock of the sandbox, or sets, advances, freezes or resumes it. Due jobs run immediately.',
    readOnly: false,
    properties: {
      now_ms: integer('Sets the time, Unix milliseconds.'),
      advance_ms: integer('Moves the time.'),
      frozen: { type: 'boolean', description: 'Freezes or resumes the clock.' },
    },
    run: (body) =>
      Object.keys(body).length === 0 ? { operation: 'getClock' } : { operation: 'setClock', body },
  },
  {
    name: 'snapshot',
    description:
      'Lists the snapshots of the sandbox, saves its whole state under a name, or returns to a saved one.',
    readOnly: false,
    properties: {
      action: { type: 'string', enum: ['list', 'save', 'load'], description: 'What to do.' },
      name: text('The snapshot to save or load.'),
    },
    required: ['action'],
    run: ({ action, name }) => {
      if (action === 'list') return { operation: 'listSnapshots' };
      return action === 'save'
        ? { operation: 'saveSnapshot', body: { name } }
        : { operation: 'loadSnapshot', path: { name } };
    },
  },
  {
    name: 'explain_policy',
    description:
      'Evaluates a request under a policy without running it, and shows the trace: which rules and conditions ' +
      'matched, with the observed values.',
    readOnly: true,
    properties: {
      wallet_id: text("Evaluates this wallet's policies."),
      policy_id: text('Evaluates this stored policy.'),
      policy: object('Evaluates this draft, the body of createPolicy.'),
      operation: text('The operation of the request; `walletRpc` by default.'),
      request: object('The body of the request, such as {"method": "personal_sign", "params": {…}}.'),
    },
    required: ['request'],
    run: (body) => ({ operation: 'explainPolicy', body }),
  },
];

/**
 * Returns the tools of `custos mcp`. They work only with a sandbox, because each call first reads the clock from the
 * control plane.
 */
export function sandboxTools(client: SandboxClient): Tool[] {
  let opened: Contract | undefined;
  const contract = (): Contract => {
    opened ??= openContract();
    return opened;
  };
  return definitions.map(({ name, description, readOnly, properties, required = [], run }) => {
    return {
      name,
      description,
      readOnly,
      inputSchema: { type: 'object', properties, required, additionalProperties: false },
      async run(input) {
        try {
          const result = run(input, contract);
          return 'operation' in result ? await callOperation(client, result) : result;
        } catch (error) {
          // For example, the operation is unknown, or no sandbox runs.
          return { content: { error: (error as Error).message }, isError: true };
        }
      },
    };
  });
}

async function callOperation(client: SandboxClient, called: Operation): Promise<ToolResult> {
  const operation = findOperation(called.operation);
  // INVARIANT: the tools send nothing to a server that is not a sandbox, because there this call fails.
  const clock = await client.call<{ now_ms: number }>('GET', '/clock');
  const headers: CallHeaders = {
    signers: (called.signers ?? []).map(seededKey),
    idempotencyKey: called.idempotencyKey,
    expiryMs: called.expiresInMs === undefined ? undefined : clock.now_ms + called.expiresInMs,
  };
  const input = inputOf(operation, called);
  const request = buildRequest(client.place(), operation, { input, headers });
  const { status, headers: received, text: body } = await client.send(request);
  return {
    content: { status, request_id: received['x-request-id'], body: parsed(body) },
    isError: status >= 400,
  };
}

/**
 * Converts the arguments of a tool to the input of a call.
 *
 * @throws ConfigError if a path parameter is missing.
 */
function inputOf(operation: CallableOperation, { path = {}, query = {}, body }: Operation): CallInput {
  const missing = pathParametersOf(operation).filter((name) => (path[name] ?? '') === '');
  if (missing.length > 0)
    throw new ConfigError('invalid arguments:', [`path_parameters: expected ${missing.join(', ')}`]);
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().map((item): [string, string] => [name, String(item)]),
  );
  const values = Object.entries(path).map(([name, value]) => [name, String(value)]);
  return { path: Object.fromEntries(values), query: pairs, body };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
