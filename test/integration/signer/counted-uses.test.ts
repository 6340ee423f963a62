import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addVault } from '../../../src/domain/money/earn/earn-vault.ts';
import { chainNamed } from '../../../src/engine/assets/known-chains.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import type { IntentResponse, Wallet } from '../../../src/generated/schemas.ts';
import type { EvmChain } from '../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { databaseKinds } from '../../support/databases.ts';
import { signIntent } from '../../support/intents.ts';
import { openOperations, type RunInput, type TestOperations } from '../../support/run-operations.ts';
import { behindProtocol } from '../../support/signer/behind-protocol.ts';
import { keyOf } from '../../support/signer/login-clients.ts';
import { lostAnswers } from '../../support/signer/lost-answers.ts';
import { newOwner } from '../../support/signer/owner.ts';
import { automated } from '../wallet-actions/automated.ts';

// Uses of wallets that depend on more than one signed request, behind a signer that counts.

const caip2 = 'eip155:8453';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const [alice, bob, carol] = [keyOf(newOwner()), keyOf(newOwner()), keyOf(newOwner())];
type Key = typeof alice;

const { loseNext, losing } = lostAnswers();
const cases = databaseKinds.flatMap((kind) => [1, 3].map((most) => [kind, most] as const));

describe.each(cases)('on %s, with %i for each request', (kind, most) => {
  let chains: SimulatedChains;
  let server: TestOperations;
  beforeAll(async () => {
    chains = openSimulatedChains({
      ...{ file: ':memory:', clock: { now: () => server?.clock.nowMs ?? 0 }, confirmAfterMs: undefined },
      knownTokens: () => [{ caip2, address: usdc, symbol: 'USDC', decimals: 6 }],
    });
    // Without a bundler, so that the wallet sends everything itself.
    const find = (id: string) => {
      const found = chains.find(id);
      if (found?.kind !== 'evm') return found;
      const { bundler: _, ...chain } = found;
      return chain as EvmChain;
    };
    server = await openOperations(kind, {
      chains: { find, listing: () => chains.used() },
      replaceKeyStore: (keyStore) => losing(behindProtocol((task) => task)(keyStore)),
      signaturesPerRequest: most,
    });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await chains.close();
  });
  const { detect, settle, executionsOf } = automated(() => server);

  async function done<T = { id: string }>(id: OperationId, input: RunInput, ...by: Key[]): Promise<T> {
    const { status, body } = await server.run(id, {
      ...input,
      signWith: by.map(({ privateKey }) => privateKey),
    });
    expect(status, `${id} ${JSON.stringify(body)}`).toBe(200);
    return body as T;
  }
  async function walletOf(body: object): Promise<Wallet> {
    const wallet = await done<Wallet>('createWallet', { body: { chain_type: 'ethereum', ...body } });
    await chains.fund(caip2, { address: wallet.address, tokenAddress: null, rawAmount: 10n ** 18n });
    return wallet;
  }
  const paying = (value: number) => ({
    ...{ method: 'eth_sendTransaction', caip2 },
    params: { transaction: { to: receiver, value: `0x${value.toString(16)}` } },
  });
  const received = async () => (await chains.find(caip2)!.balances(receiver, [null]))[0]!;
  /** What the receiver gets meanwhile. */
  async function paid(work: () => Promise<unknown>): Promise<bigint> {
    const before = await received();
    await work();
    await settle();
    return (await received()) - before;
  }

  describe('an intent of two of three members', () => {
    let wallet: Wallet;
    beforeAll(async () => {
      const public_keys = [alice, bob, carol].map(({ publicKey }) => publicKey);
      const quorum = await done('createKeyQuorum', { body: { public_keys, authorization_threshold: 2 } });
      wallet = await walletOf({ owner_id: quorum.id });
    });

    const propose = (value: number) =>
      done<IntentResponse>('createWalletRpcIntent', { path: { wallet_id: wallet.id }, body: paying(value) });
    const authorize = (intent: IntentResponse, { privateKey }: Key) => {
      const signature = signIntent({ prefix: 'service', appId: server.app.id }, intent, privateKey);
      return server.run('authorizeIntent', {
        path: { intent_id: intent.intent_id },
        body: { signature, timestamp: server.clock.nowMs },
      });
    };
    const outcomeOf = async ({ intent_id }: IntentResponse) => {
      const read = await done<IntentResponse>('getIntent', { path: { intent_id } });
      const result = 'action_result' in read ? (read.action_result as { response_body?: unknown }) : {};
      return [read.status, (result.response_body as { code?: string } | undefined)?.code];
    };
    async function agreed(value: number) {
      const intent = await propose(value);
      await authorize(intent, alice);
      await authorize(intent, bob);
      return outcomeOf(intent);
    }

    test('an intent of two of three members is sent once, also when the answers of the signer were lost', async () => {
      const intent = await propose(1_000);
      await authorize(intent, alice);
      const total = await paid(async () => {
        loseNext(3);
        for (let n = 0; n < 3; n += 1) await authorize(intent, bob).catch(() => undefined);
        loseNext(0);
        await authorize(intent, carol);
      });
      expect([await outcomeOf(intent), total]).toEqual([['executed', undefined], 1_000n]);
    });

    test('that asks for the same again is the same request, as its members have signed no expiry', async () => {
      const outcomes: unknown[] = [];
      const total = await paid(async () => {
        for (let n = 0; n <= most; n += 1) outcomes.push(await agreed(2_000));
      });
      const refused = ['failed', 'transaction_broadcast_failure'];
      expect(outcomes).toEqual([...Array.from({ length: most }, () => ['executed', undefined]), refused]);
      expect(total).toBe(BigInt(2_000 * most));
    });

    test('and others at the same time are all sent', async () => {
      const intents = await Promise.all(Array.from({ length: 6 }, (_, index) => propose(3_000 + index)));
      const total = await paid(async () => {
        await Promise.all(intents.map((intent) => authorize(intent, carol)));
        await Promise.all(intents.map((intent) => authorize(intent, alice)));
      });
      expect(await Promise.all(intents.map(outcomeOf))).toEqual(intents.map(() => ['executed', undefined]));
      expect(total).toBe(6n * 3_000n + 15n);
    });
  });

  const sends = (wallet: Wallet, by: Key, value: number) =>
    server.run('walletRpc', {
      ...{ path: { wallet_id: wallet.id }, body: paying(value) },
      signWith: [by.privateKey],
    });

  /** Deposits the wallet's USDC into a vault. */
  async function attachAutomation(wallet: Wallet): Promise<void> {
    const terms = { asset: usdc, decimals: 6, symbol: 'USDC', apyBps: 410, feeBps: 0 };
    const admin = `0x${'0'.repeat(40)}`;
    const address = await chains.earn.addVault(caip2, {
      ...{ name: 'Vault', ...terms, admin, feeKind: 'shares', offset: 0 },
    });
    const named = { appId: server.app.id, provider: 'tempo', name: undefined } as const;
    const vault = await server.database.orm.em
      .fork()
      .transactional((em) =>
        addVault(
          server.context(em as SqlEntityManager),
          { ...named, chain: chainNamed('base')!, address, adminWalletId: null, feeBps: 0 },
          { assetAddress: usdc, assetSymbol: 'USDC', assetDecimals: 6 },
        ),
      );
    await detect();
    const assets = { mode: 'include', values: [{ asset: 'usdc', chain: 'base' }] };
    const action = { type: 'earn_deposit', vault_id: vault.id };
    const body = { owner_id: null, config: { trigger: { type: 'deposit', assets }, action } };
    const { id } = await done('createWalletAutomation', { body });
    const path = { wallet_id: wallet.id };
    await done('attachWalletAutomations', { path, body: { automation_ids: [id] } }, alice);
  }

  test('automations that take the nonces of a request whose answers were lost do not have it refused', async () => {
    const wallet = await walletOf({ owner: { public_key: alice.publicKey } });
    await attachAutomation(wallet);
    const total = await paid(async () => {
      for (let n = 0; n <= most; n += 1) {
        loseNext(1);
        await expect(sends(wallet, alice, 4_000)).rejects.toMatchObject({ name: 'SignerUnavailableError' });
        await chains.fund(caip2, { address: wallet.address, tokenAddress: usdc, rawAmount: 1_000_000n });
        await settle();
      }
      expect(await sends(wallet, alice, 4_000)).toMatchObject({ status: 200 });
    });
    expect(total).toBe(4_000n);
    const statuses = (await executionsOf(wallet.id)).map(({ status }) => status);
    expect(statuses).toEqual(Array.from({ length: most + 1 }, () => 'completed'));
  });

  /** May sign 100 in an hour. */
  async function cappedWallet(): Promise<Wallet> {
    const { id } = await done('createAggregation', {
      body: {
        ...{ name: 'Signed in an hour', method: 'eth_signTransaction' },
        metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
        window: { type: 'rolling', seconds: 3600 },
      },
    });
    const below = { field_source: 'reference', field: `aggregation.${id}`, operator: 'lte', value: '100' };
    const rule = { name: 'cap', method: 'eth_signTransaction', action: 'ALLOW', conditions: [below] };
    const policy = await done('createPolicy', {
      body: { version: '1.0', name: 'Cap', chain_type: 'ethereum', rules: [rule] },
    });
    return walletOf({ owner: { public_key: bob.publicKey }, policy_ids: [policy.id] });
  }

  // A total is of what is signed in full, so a repeated request is counted there and not in the signer.
  test('a running total counts the same request again, and the signer does not', async () => {
    const wallet = await cappedWallet();
    const transaction = {
      type: 0,
      to: receiver,
      value: 40,
      chain_id: 8453,
      nonce: 0,
      gas_limit: 21_000,
      gas_price: 1,
    };
    const signs = async () => {
      const body = { method: 'eth_signTransaction', params: { transaction } };
      const path = { wallet_id: wallet.id };
      const answer = await server.run('walletRpc', { path, body, signWith: [bob.privateKey] });
      return answer.status === 200 ? 'signed' : (answer.body as { code: string }).code;
    };
    loseNext(4);
    for (let n = 0; n < 4; n += 1)
      await expect(signs()).rejects.toMatchObject({ name: 'SignerUnavailableError' });
    const outcomes = await Promise.all([signs(), signs(), signs(), signs()]);
    expect(outcomes.toSorted()).toEqual(['policy_violation', 'policy_violation', 'signed', 'signed']);
    server.clock.nowMs += 3_700_000;
    expect(await signs()).toBe('signed');
  });
});
