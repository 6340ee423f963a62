import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SignerUnavailableError } from '../../../src/adapters/signer/signer-errors.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import type { IntentResponse, Wallet } from '../../../src/generated/schemas.ts';
import type { EvmChain } from '../../../src/ports/chains.ts';
import type { KeyVault } from '../../../src/ports/key-vault.ts';
import { openSimulatedChains, type SimulatedChains } from '../../../src/simulated/chains/simulated-chains.ts';
import { databaseKinds } from '../../support/databases.ts';
import { signIntent } from '../../support/intents.ts';
import { openOperations, type RunInput, type TestOperations } from '../../support/run-operations.ts';
import { behindProtocol } from '../../support/signer/behind-protocol.ts';
import { keyOf } from '../../support/signer/login-clients.ts';
import { newOwner } from '../../support/signer/owner.ts';
import { automated } from '../wallet-actions/automated.ts';

// Intents of several members, whose signatures are collected, behind a signer that counts.

const caip2 = 'eip155:8453';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const [alice, bob, carol] = [keyOf(newOwner()), keyOf(newOwner()), keyOf(newOwner())];
type Key = typeof alice;

/** How many answers of the signer are lost. */
let lost = 0;

/** Signs, and loses the answer. */
function losing(vault: KeyVault): KeyVault {
  return new Proxy(vault, {
    get(target, name: keyof KeyVault) {
      if (name !== 'signWithWallet') return target[name];
      return async (...args: Parameters<KeyVault['signWithWallet']>) => {
        const signed = await vault.signWithWallet(...args);
        lost -= 1;
        if (lost >= 0) throw new SignerUnavailableError('the answer was lost');
        return signed;
      };
    },
  });
}

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
      replaceVault: (vault) => losing(behindProtocol((task) => task)(vault)),
      signaturesPerRequest: most,
    });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await chains.close();
  });
  const { settle } = automated(() => server);

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

    test('is sent once, also when the answers of the signer were lost', async () => {
      const intent = await propose(1_000);
      await authorize(intent, alice);
      const total = await paid(async () => {
        lost = 3;
        for (let n = 0; n < 3; n += 1) await authorize(intent, bob).catch(() => undefined);
        lost = 0;
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
});
