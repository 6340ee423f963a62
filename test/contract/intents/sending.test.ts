import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { IntentResponse, Wallet, WalletRpcRequest } from '../../../src/generated/schemas.ts';
import type { AnyChain, BroadcastOutcome } from '../../../src/ports/chains.ts';
import { call } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { authorize, intentEvents, readIntent } from '../../support/intents.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';
import { alice, bob, worldOf } from './world.ts';

// An rpc intent whose request broadcasts to a chain: the response of the chain settles it.

const caip2 = 'eip155:8453';
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const ether = 10n ** 18n;

let sandbox: TestSandbox;
let wallet: Wallet;
let chain: AnyChain;

beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await sandbox.reset();
  wallet = await worldOf(sandbox).wallet();
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: ether });
  chain = sandbox.chains.find(caip2)!;
});

async function propose(value: string): Promise<IntentResponse> {
  const body = {
    method: 'eth_sendTransaction',
    caip2,
    params: { transaction: { to: receiver, value } },
  } as WalletRpcRequest;
  return (await call(sandbox, 'createWalletRpcIntent', { path: { wallet_id: wallet.id }, body })).body;
}

/** The intent after the last signature, whose response does not wait for the chain. */
async function agree(intent: IntentResponse): Promise<IntentResponse> {
  await authorize(sandbox, intent, alice);
  await authorize(sandbox, intent, bob);
  return readIntent(sandbox, intent);
}

const eventTypes = async (intent: IntentResponse) =>
  (await intentEvents(sandbox, intent.intent_id)).map(({ type }) => type);

/** Balances are read from the ledger of the chain. */
const received = async () => (await chain.balances(receiver, [null]))[0];

test('the second signature sends: the intent is executed and its result contains the transaction', async () => {
  const intent = await propose('0x5');
  expect((await authorize(sandbox, intent, alice)).status).toBe('pending');
  await waitSeconds(sandbox, 60);
  expect(await received()).toBe(0n);
  expect((await authorize(sandbox, intent, bob)).status).toBe('processing');
  const executed = await readIntent(sandbox, intent);
  expect(executed).toMatchObject({
    status: 'executed',
    action_result: {
      status_code: 200,
      executed_at: sandbox.clock.now(),
      response_body: {
        method: 'eth_sendTransaction',
        data: {
          caip2,
          hash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
          transaction_request: { to: receiver, value: '0x5', nonce: 0, chain_id: 8453, type: 2 },
        },
      },
    },
  });
  const { data } = (executed as { action_result: { response_body: { data: Record<string, string> } } })
    .action_result.response_body;
  await waitSeconds(sandbox, 10);
  const path = { transaction_id: data.transaction_id! };
  expect((await call(sandbox, 'getTransaction', { path })).body).toMatchObject({
    wallet_id: wallet.id,
    transaction_hash: data.hash,
    status: 'confirmed',
  });
  expect(await received()).toBe(5n);
  expect(await eventTypes(intent)).toEqual([
    'intent.created',
    'intent.authorized',
    'intent.authorized',
    'intent.executed',
  ]);
});

test('an amount above the balance: the intent fails before anything is signed', async () => {
  const intent = await propose(`0x${ether.toString(16)}`);
  const failed = await agree(intent);
  expect(failed).toMatchObject({
    status: 'failed',
    action_result: { status_code: 400, response_body: { code: 'insufficient_funds' } },
  });
  expect((await eventTypes(intent)).at(-1)).toBe('intent.failed');
  const query = { chain: 'base', asset: 'eth' } as const;
  const { body } = await call(sandbox, 'getWalletTransactions', { path: { wallet_id: wallet.id }, query });
  expect(body.transactions.map(({ details }) => details?.type)).toEqual(['transfer_received']);
});

/** The response of the chain to the next broadcast. */
function answerNext(answer: () => Promise<BroadcastOutcome>): void {
  const broadcast = chain.broadcast.bind(chain);
  Object.assign(chain, {
    broadcast: (bytes: Uint8Array) => {
      Object.assign(chain, { broadcast });
      expect(bytes.length).toBeGreaterThan(100);
      return answer();
    },
  });
}

test('refused by the chain after the commit: intent and transaction fail, and the nonce is free', async () => {
  answerNext(async () => ({ isAccepted: false, reason: 'underpriced', message: 'fee too low' }));
  const failed = await agree(await propose('0x5'));
  expect(failed).toMatchObject({
    status: 'failed',
    action_result: {
      status_code: 400,
      response_body: {
        code: 'transaction_broadcast_failure',
        error: 'the chain refused the transaction: fee too low',
      },
    },
  });
  const executed = await agree(await propose('0x6'));
  expect(executed).toMatchObject({
    status: 'executed',
    action_result: { response_body: { data: { transaction_request: { nonce: 0 } } } },
  });
  await waitSeconds(sandbox, 60);
  expect(await received()).toBe(6n);
});

test('chain unreachable at the broadcast: the intent is executed, and the same bytes are broadcast later', async () => {
  answerNext(() => Promise.reject(new Error('connect ECONNREFUSED')));
  const executed = await agree(await propose('0x7'));
  expect(executed.status).toBe('executed');
  expect(await received()).toBe(0n);
  await waitSeconds(sandbox, 30);
  await waitSeconds(sandbox, 60);
  expect(await received()).toBe(7n);
});
