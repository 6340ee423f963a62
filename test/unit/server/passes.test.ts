import { afterAll, describe, expect, test } from 'vitest';
import { makeIds, seededEntropy } from '../../../src/adapters/runtime.ts';
import { type Pass, RunAgainError, runInPasses } from '../../../src/keys/passes.ts';
import type { KeyStore } from '../../../src/ports/key-store.ts';
import { createKeyedMutex } from '../../../src/server/keyed-mutex.ts';
import { unitsOf } from '../../../src/server/unit-of-work.ts';
import { holdsConnection } from '../../../src/storage/own-kysely.ts';
import { openTestDatabase } from '../../support/databases.ts';

const database = await openTestDatabase('sqlite');
const unit = await unitsOf(database)(true);
// The first statement begins the transaction, which then holds the connection.
await unit.em.execute('select 1');
expect(holdsConnection(unit.em)).toBe(true);

afterAll(async () => {
  await unit.rollback();
  await database[Symbol.asyncDispose]();
});

const sealed = { sealedSecret: new Uint8Array(), wrappedDataKey: new Uint8Array(), masterKeyId: 'one' };
const binding = { purpose: 'ethereum', rowId: 'wallet', appId: 'app' };

function servicesWith(methods: object) {
  const entropy = seededEntropy('passes');
  const keyStore = { currentMasterKeyId: 'one', ...methods } as unknown as KeyStore;
  return { keyStore, entropy, ids: makeIds(entropy), machine: { now: () => 0 } };
}

/** What the pipeline does around a handler. */
function run<T>(
  services: ReturnType<typeof servicesWith>,
  handler: (ports: ReturnType<Pass['portsFor']>) => Promise<T>,
  mutex = createKeyedMutex(),
): Promise<T> {
  const work = async (pass: Pass): Promise<T> => {
    const result = await handler(pass.portsFor(unit.em));
    if (pass.mustRunAgain()) throw new RunAgainError();
    pass.hasCommitted();
    return result;
  };
  return runInPasses(services, work, { acquireMutex: mutex.acquire });
}

describe('the passes of a request', () => {
  test('draw the same ids and bytes, and give a key store the secret that its caller has wiped', async () => {
    const seals: [string, string][] = [];
    const services = servicesWith({
      async seal(secret: Uint8Array, { rowId }: { rowId: string }) {
        seals.push([rowId, Buffer.from(secret).toString('hex')]);
        return sealed;
      },
    });
    const result = await run(services, async ({ ids, entropy, keyStore }) => {
      const id = ids.cuid2();
      const secret = entropy.bytes(8);
      const text = Buffer.from(secret).toString('hex');
      await keyStore.seal(secret, { ...binding, rowId: id }).finally(() => secret.fill(0));
      return [id, text];
    });
    expect(seals).toEqual([result]);
  });

  test('end with the refusal of the key store, which is asked once', async () => {
    let calls = 0;
    const services = servicesWith({
      async signWithWallet() {
        calls += 1;
        throw new Error('no such method');
      },
    });
    const task = { method: 'personal_sign', params: { message: 'hi', encoding: 'utf-8' } } as const;
    const signed = run(services, ({ keyStore }) => keyStore.signWithWallet(sealed, binding, task));
    await expect(signed).rejects.toThrow('no such method');
    expect(calls).toBe(1);
  });

  test('work does not end the passes of a request when it catches the error of a call without an answer', async () => {
    const services = servicesWith({ fingerprint: async () => 'digest' });
    const results = await run(services, async ({ keyStore }) => {
      try {
        return await keyStore.fingerprint(sealed, binding, 'text');
      } catch {
        return 'stored as a failure';
      }
    });
    expect(results).toBe('digest');
  });

  test('of many requests for one wallet take turns, so that few sign for a nonce that is taken', async () => {
    let calls = 0;
    const services = servicesWith({
      async signWithWallet(_: unknown, __: unknown, { params }: { params: { nonce: number } }) {
        calls += 1;
        await new Promise((resolve) => setImmediate(resolve));
        return params.nonce;
      },
    });
    const stored: unknown[] = [];
    const mutex = createKeyedMutex();
    const send = () =>
      run(
        services,
        async ({ keyStore }) => {
          const nonce = stored.length;
          const task = { method: 'raw_sign', params: { nonce } } as never;
          const signature = await keyStore.signWithWallet(sealed, binding, task);
          expect(stored.length).toBe(nonce);
          stored.push(signature);
        },
        mutex,
      );
    await Promise.all(Array.from({ length: 50 }, send));
    expect(stored).toEqual(Array.from({ length: 50 }, (_, nonce) => nonce));
    expect(calls).toBe(50);
    expect((await mutex.acquire(binding.rowId)).hasWaited).toBe(false);
  });
});
