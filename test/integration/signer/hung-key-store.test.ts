import { recoverMessageAddress } from 'viem/utils';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { isUnavailable } from '../../../src/errors.ts';
import { SignerUnavailableError } from '../../../src/keys/signer-errors.ts';
import type { KeyStore } from '../../../src/ports/key-store.ts';
import { createAdmission } from '../../../src/server/admission.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

/** A key store that can be stopped: calls then get no answer until it ends. */
function stoppableKeyStore() {
  let stopped: PromiseWithResolvers<void> | undefined;
  const calls: string[] = [];
  return {
    calls,
    around: (keyStore: KeyStore): KeyStore =>
      new Proxy(keyStore, {
        get(target, name) {
          const member = target[name as keyof KeyStore];
          if (typeof member !== 'function') return member;
          return async (...args: never[]) => {
            calls.push(String(name));
            if (stopped !== undefined) await stopped.promise;
            return (member as (...args: never[]) => unknown).apply(target, args);
          };
        },
      }),
    stop(): void {
      stopped = Promise.withResolvers();
      stopped.promise.catch(() => undefined);
    },
    resume(): void {
      stopped?.resolve();
      stopped = undefined;
    },
    end(): void {
      stopped?.reject(new SignerUnavailableError('the connection to the signer has ended'));
      stopped = undefined;
    },
  };
}

const sign = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };

describe.each(databaseKinds)('on %s, while the signer hangs', (kind) => {
  const keyStore = stoppableKeyStore();
  let server: TestOperations;
  let walletId: string;
  beforeAll(async () => {
    server = await openOperations(kind, {
      poolSize: 2,
      replaceKeyStore: keyStore.around,
      admission: createAdmission({
        limits: { requests: 1_000, concurrent: { reads: 4, writes: 4, signing: 4 }, delayMs: 100 },
        signing: ['walletRpc'],
        loop: { current: () => ({ turn: 0, elapsedMs: 0 }) },
        now: () => performance.now(),
        log: silentLog,
      }),
    });
    const { body } = await server.run('createWallet', { body: { chain_type: 'ethereum' } });
    walletId = (body as { id: string }).id;
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const signing = (idempotencyKey?: string) =>
    server.run('walletRpc', {
      path: { wallet_id: walletId },
      body: sign,
      ...(idempotencyKey && { idempotencyKey }),
    });
  const creating = (idempotencyKey?: string) =>
    server.run('createWallet', {
      body: { chain_type: 'ethereum' },
      ...(idempotencyKey && { idempotencyKey }),
    });
  /** `unavailable` for what becomes 503 with `Retry-After`. */
  const outcomeOf = (request: Promise<{ readonly status: number }>): Promise<number | 'unavailable'> =>
    request.then(
      ({ status }) => (status === 503 ? 'unavailable' : status),
      (error: unknown) => {
        if (isUnavailable(error)) return 'unavailable';
        throw error;
      },
    );

  test('requests that need no key are answered, those that need one are refused, and all recovers', async () => {
    const policy = {
      version: '1.0',
      name: 'any',
      chain_type: 'ethereum',
      rules: [{ name: 'all', method: '*', conditions: [], action: 'ALLOW' }],
    };
    keyStore.stop();
    // With an idempotency key, a transaction is open when the key store is needed.
    const needKeys = Array.from({ length: 12 }, (_, index) =>
      [signing(), signing(`sign ${index}`), creating(), creating(`create ${index}`)].map(outcomeOf),
    ).flat();
    for (let round = 0; round < 5; round += 1) {
      const needNone = await Promise.all([
        server.run('getWallet', { path: { wallet_id: walletId } }),
        server.run('createPolicy', { body: policy }),
        server.run('updateWallet', {
          path: { wallet_id: walletId },
          body: { display_name: `round ${round}` },
        }),
      ]);
      expect(needNone.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
    // All of it while the key store answers nothing.
    keyStore.end();
    expect(new Set(await Promise.all(needKeys))).toEqual(new Set(['unavailable', 200]));
    const after = await Promise.all([signing('sign 0'), creating('create 0'), signing(), creating()]);
    expect(after.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  test.each([
    ['with a lock, however short', 'locked', 0],
    ['without, after half a second', undefined, 501],
  ] as const)(
    'a signature is not given out if the policy denies it by then: %s',
    async (_, key, waitedMs) => {
      const { body } = await server.run('createWallet', { body: { chain_type: 'ethereum' } });
      const own = { path: { wallet_id: (body as { id: string }).id } };
      const denial = { name: 'none', method: '*', conditions: [], action: 'DENY' };
      const denying = await server.run('createPolicy', {
        body: { version: '1.0', name: 'none', chain_type: 'ethereum', rules: [denial] },
      });
      keyStore.stop();
      keyStore.calls.length = 0;
      const signed = server.run('walletRpc', { ...own, body: sign, ...(key && { idempotencyKey: key }) });
      await expect.poll(() => keyStore.calls).toEqual(['signWithWallet']);
      const policyIds = [(denying.body as { id: string }).id];
      expect(await server.run('updateWallet', { ...own, body: { policy_ids: policyIds } })).toMatchObject({
        status: 200,
      });
      server.clock.nowMs += waitedMs;
      keyStore.resume();
      expect(await signed).toMatchObject({ status: 400, body: { code: 'policy_violation' } });
      // The signature was made, and not given out.
      expect(keyStore.calls).toEqual(['signWithWallet']);
    },
  );

  test('each wallet of one request gets the key that was drawn for its id, and others get other keys', async () => {
    const wallets = Array.from({ length: 25 }, () => ({ chain_type: 'ethereum' }));
    const answers = await Promise.all(
      ['first', 'second'].map((idempotencyKey) =>
        server.run('createWalletsBatch', { body: { wallets }, idempotencyKey }),
      ),
    );
    const made = answers.flatMap(
      ({ body }) => (body as unknown as { results: { wallet: { id: string; address: string } }[] }).results,
    );
    expect(new Set(made.map(({ wallet }) => wallet.address)).size).toBe(50);
    for (const { wallet } of [made[0]!, made[24]!, made[49]!]) {
      const signed = await server.run('walletRpc', { path: { wallet_id: wallet.id }, body: sign });
      const { signature } = (signed.body as { data: { signature: `0x${string}` } }).data;
      expect(await recoverMessageAddress({ message: 'hello', signature })).toBe(wallet.address);
    }
  });
});
