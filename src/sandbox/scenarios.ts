import { ApiError } from '../errors.ts';
import { passTimeTo } from './clock.ts';
import type { ControlContext } from './control-plane.ts';
import { selectionOf } from './faults/fault-rules.ts';
import { readFault } from './faults/read-fault.ts';
import type { SandboxScenarioResource, SandboxScenarioStep } from './generated/schemas.ts';
import type { Signer } from './requests/own-api.ts';

export interface SeededKey {
  readonly name: Signer;
  readonly publicKey: string;
}

/** A request to this sandbox's API, with the credentials of its app. */
interface ApiRequest {
  /** The `operationId` in the API document. */
  readonly operation: string;
  readonly path?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly signWith?: readonly SeededKey[];
}

interface ApiAnswer {
  readonly requestId: string | null;
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Runs the steps of a scenario and records them. */
interface Stage {
  readonly context: ControlContext;
  readonly alice: SeededKey;
  readonly bob: SeededKey;
  readonly resources: readonly SandboxScenarioResource[];
  readonly steps: readonly SandboxScenarioStep[];
  /** Creates a resource of this type and returns its id. Throws if the request fails. */
  create(type: string, summary: string, request: ApiRequest): Promise<string>;
  /** Sends a request whose response may be an error. */
  call(summary: string, request: ApiRequest): Promise<ApiAnswer>;
  /** Records a step that is not a request. */
  note(summary: string): void;
}

export function openStage(context: ControlContext): Stage {
  const resources: SandboxScenarioResource[] = [];
  const steps: SandboxScenarioStep[] = [];
  const call: Stage['call'] = async (summary, request) => {
    const { operation, path = {}, body: sent, signWith = [] } = request;
    const signAs = signWith.map(({ name }) => name);
    const call = { operation, path, query: {}, headers: {}, body: sent, signAs, isRecorded: true };
    const { status, text, requestId = null } = await context.ownApi.call(call, context.signal);
    const body = (text === '' ? {} : JSON.parse(text)) as ApiAnswer['body'];
    const code = status > 0 && status < 400 ? null : String(body.code ?? body.error);
    steps.push({ summary, request_id: requestId, operation, status, code });
    return { status, body, requestId };
  };
  return {
    context,
    ...context.seededKeys,
    resources,
    steps,
    call,
    async create(type, summary, request) {
      const { status, body, requestId } = await call(summary, request);
      if (status === 0 || status >= 400) throw failed(request.operation, requestId, body);
      const id = String(body[`${type}_id`] ?? body.id);
      resources.push({ type, id });
      return id;
    },
    note: (summary) =>
      void steps.push({ summary, request_id: null, operation: null, status: null, code: null }),
  };
}

/** Returns the error of a scenario that cannot continue, for example because of a fault rule. */
function failed(operation: string, requestId: string | null, body: ApiAnswer['body']): ApiError {
  return new ApiError(
    'invalid_state',
    `\`${operation}\` did not succeed: ${String(body.error)}; \`custos why ${requestId}\` explains it`,
  );
}

const body = { method: 'personal_sign', params: { message: 'Release invoice 2041', encoding: 'utf-8' } };

function signMessage(walletId: string, signWith: readonly SeededKey[] = []): ApiRequest {
  return { operation: 'walletRpc', path: { wallet_id: walletId }, body, signWith };
}

/** Returns the command that signs the scenario's message. */
function signMessageCommand(walletId: string, signers: string): string {
  return `custos call walletRpc ${walletId} --sign ${signers} method=personal_sign params.message='Release invoice 2041' params.encoding=utf-8`;
}

/** The scenario's message, as the body of a proposal. */
const messageBody = body;

const keyRevoked: Scenario = {
  name: 'key-revoked',
  summary: 'Bob removes the key of Alice from the key quorum of a wallet; her signature no longer counts.',
  async play(stage) {
    const { alice, bob } = stage;
    const quorum = await stage.create('key_quorum', 'Each of Alice and Bob may act alone', {
      operation: 'createKeyQuorum',
      body: { public_keys: [alice.publicKey, bob.publicKey], authorization_threshold: 1 },
    });
    const wallet = await stage.create('wallet', 'Their quorum gets a wallet', {
      operation: 'createWallet',
      body: { chain_type: 'ethereum', owner_id: quorum },
    });
    await stage.call('Alice signs a message', signMessage(wallet, [alice]));
    await stage.call('Bob removes the key of Alice', {
      operation: 'updateKeyQuorum',
      path: { key_quorum_id: quorum },
      body: { public_keys: [bob.publicKey] },
      signWith: [bob],
    });
    const { requestId } = await stage.call('Alice signs the same message', signMessage(wallet, [alice]));
    return [`custos why ${requestId}`, signMessageCommand(wallet, 'bob')];
  },
};

const transaction = {
  ...{
    to: '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0',
    chain_id: 8453,
    nonce: 0,
    type: 2,
    gas_limit: 21000,
  },
  ...{ max_fee_per_gas: '0x77359400', max_priority_fee_per_gas: '0x3b9aca00' },
};

const policyDenied: Scenario = {
  name: 'policy-denied',
  summary: 'A policy that allows at most 0.001 ETH denies a transaction of 1 ETH.',
  async play(stage) {
    const policy = await stage.create('policy', 'A policy allows transactions of at most 0.001 ETH', {
      operation: 'createPolicy',
      body: {
        version: '1.0',
        name: 'Small payments',
        chain_type: 'ethereum',
        rules: [
          {
            name: 'At most 0.001 ETH',
            method: 'eth_signTransaction',
            conditions: [
              {
                field_source: 'ethereum_transaction',
                field: 'value',
                operator: 'lte',
                value: '1000000000000000',
              },
            ],
            action: 'ALLOW',
          },
        ],
      },
    });
    const wallet = await stage.create('wallet', 'A wallet gets the policy', {
      operation: 'createWallet',
      body: { chain_type: 'ethereum', policy_ids: [policy] },
    });
    const sign = (value: string) => ({
      operation: 'walletRpc',
      path: { wallet_id: wallet },
      body: { method: 'eth_signTransaction', params: { transaction: { ...transaction, value } } },
    });
    await stage.call('It signs a transaction of 0.001 ETH', sign('0x38d7ea4c68000'));
    const { requestId } = await stage.call('It is asked to sign one of 1 ETH', sign('0xde0b6b3a7640000'));
    return [`custos why ${requestId}`, `custos call getPolicy ${policy}`];
  },
};

const quorumShort: Scenario = {
  name: 'quorum-short',
  summary: 'A wallet of two owners refuses a request that only one of them has signed.',
  async play(stage) {
    const { alice, bob } = stage;
    const quorum = await stage.create('key_quorum', 'Alice and Bob form a key quorum of two', {
      operation: 'createKeyQuorum',
      body: { public_keys: [alice.publicKey, bob.publicKey], authorization_threshold: 2 },
    });
    const wallet = await stage.create('wallet', 'The quorum gets a wallet', {
      operation: 'createWallet',
      body: { chain_type: 'ethereum', owner_id: quorum },
    });
    const { requestId } = await stage.call('Alice alone signs a message', signMessage(wallet, [alice]));
    return [`custos why ${requestId}`, signMessageCommand(wallet, 'alice,bob')];
  },
};

const CAIP2 = 'eip155:8453';
/** How often the jobs check a transaction. */
const CHECK_MS = 2_000;

const transactionReverted: Scenario = {
  name: 'tx-reverted',
  summary: 'A transaction that was simulated successfully reverts in its block. Advances the clock.',
  async play(stage) {
    const { context } = stage;
    const wallet = await stage.create('wallet', 'A wallet is created', {
      operation: 'createWallet',
      body: { chain_type: 'ethereum' },
    });
    const { body } = await stage.call('Its address', { operation: 'getWallet', path: { wallet_id: wallet } });
    await context.chains.fund(CAIP2, {
      address: String(body.address),
      tokenAddress: null,
      rawAmount: 10n ** 18n,
    });
    stage.note('The faucet pays it 1 ETH on Base');
    await revertNext(stage, wallet);
    const sent = await stage.call('It sends 1 wei', {
      operation: 'walletRpc',
      path: { wallet_id: wallet },
      body: {
        method: 'eth_sendTransaction',
        caip2: CAIP2,
        params: { transaction: { to: '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0', value: '0x1' } },
      },
    });
    const { transaction_id: transaction } = (sent.body.data ?? {}) as { transaction_id?: string };
    if (transaction === undefined)
      throw new ApiError(
        'invalid_state',
        `the transaction was refused; \`custos why ${sent.requestId}\` explains it`,
      );
    await context.chains.mine(CAIP2, 1);
    context.clock.advance(CHECK_MS);
    await context.finishJobs();
    stage.note('A block includes it');
    await stage.call('It is reverted', {
      operation: 'getTransaction',
      path: { transaction_id: transaction },
    });
    return [`custos call getTransaction ${transaction}`, 'custos events list --events transaction.*'];
  },
};

async function revertNext({ context, note }: Stage, wallet: string): Promise<void> {
  const body = { effect: 'transaction_revert' as const, wallet_id: wallet, count: 1 };
  const rule = context.faults.add(readFault(body, context), await selectionOf(body, context));
  if (rule === undefined)
    throw new ApiError('invalid_state', 'there are too many fault rules; remove some first');
  note(`The fault rule ${rule.id} makes its next transaction revert`);
}

/** An address at which no server listens: the discard port. */
const URL = 'http://127.0.0.1:9/hook';
const DAY_MS = 24 * 3_600_000;
const DAYS = 5;

const webhookDown: Scenario = {
  name: 'webhook-down-5-days',
  summary: 'An endpoint that fails every day for five days is disabled. Advances the clock.',
  async play(stage) {
    const { context } = stage;
    const endpoint = await stage.create('webhook_endpoint', 'An endpoint at a closed port', {
      operation: 'createWebhookEndpoint',
      body: { url: URL },
    });
    const path = { endpoint_id: endpoint };
    for (let day = 0; day <= DAYS; day += 1) {
      if (day > 0) {
        await passTimeTo(context.clock.now() + DAY_MS, context);
        await context.finishJobs();
      }
      await stage.call(`Day ${day}: a test event`, { operation: 'testWebhookEndpoint', path, body: {} });
      await context.finishJobs();
    }
    await stage.call('The endpoint is disabled', { operation: 'getWebhookEndpoint', path });
    return [
      `custos call listWebhookDeliveries ${endpoint}`,
      `custos call updateWebhookEndpoint ${endpoint} status=enabled`,
    ];
  },
};

/** A scenario that shows how something fails. */
interface Scenario {
  readonly name: string;
  /** Describes the scenario in one sentence. */
  readonly summary: string;
  /** Runs the scenario. Returns commands that show more about the failure, or that repair it. */
  play(stage: Stage): Promise<readonly string[]>;
}

const intentExpired: Scenario = {
  name: 'intent-expired',
  summary: 'A proposal without authorization expires after 72 hours. Advances the clock.',
  async play(stage) {
    const { context, alice } = stage;
    const wallet = await stage.create('wallet', 'Alice gets a wallet', {
      operation: 'createWallet',
      body: { chain_type: 'ethereum', owner: { public_key: alice.publicKey } },
    });
    const intent = await stage.create('intent', 'The app proposes to sign a message with it', {
      operation: 'createWalletRpcIntent',
      path: { wallet_id: wallet },
      body: messageBody,
    });
    const read = { operation: 'getIntent', path: { intent_id: intent } };
    const { body } = await stage.call('It waits for Alice', read);
    context.clock.advance(Number(body.expires_at) + 1 - context.clock.now());
    await context.finishJobs();
    stage.note('The clock passes the expiry');
    await stage.call('It is expired', read);
    return [`custos call getIntent ${intent}`, 'custos events list --events intent.*'];
  },
};

export const scenarios: readonly Scenario[] = [
  quorumShort,
  policyDenied,
  intentExpired,
  keyRevoked,
  transactionReverted,
  webhookDown,
];
