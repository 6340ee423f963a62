import type { SqlEntityManager } from '@mikro-orm/sql';
import { describe, expect, test } from 'vitest';
import { createKeyQuorum, lockKeyQuorum } from '../../../src/domain/access/key-quorums/key-quorum.ts';
import { idempotencyKeys } from '../../../src/domain/base/idempotency/idempotency-keys.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { createWallet } from '../../../src/domain/wallets/wallets/create-wallet.ts';
import { updateWallet } from '../../../src/domain/wallets/wallets/update-wallet.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import { contextOf, inTransaction } from '../../integration/contexts.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { unsignedProof } from '../../support/unsigned-proof.ts';

const PUBLIC_KEY =
  'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEx4aoeD72yykviK+f/ckqE2CItVIG1rCnvC3/XZ1HgpOcMEMialRmTrqIK4oZlYd1RfxU3za/C9yjhboIuoPD3g==';
const HOUR_MS = 60 * 60 * 1000;

/** A request whose work is done and whose commit the test triggers. */
function halfDone<T>(database: TestDatabase, work: (context: OperationContext) => Promise<T>) {
  const done = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const committed = inTransaction(database, async (context) => {
    const result = await work(context);
    done.resolve();
    await release.promise;
    return result;
  });
  committed.catch(done.reject);
  return {
    done: done.promise,
    commit: () => {
      release.resolve();
      return committed;
    },
  };
}

const aMoment = () => new Promise((resolve) => setTimeout(resolve, 100));

describe.each(databaseKinds)('on %s', (kind) => {
  test('of two concurrent changes of signers the second replaces the first', async () => {
    await using database = await openTestDatabase(kind);
    const quorum = await inTransaction(database, (context) =>
      createKeyQuorum(context, { public_keys: [PUBLIC_KEY] }),
    );
    const wallet = await inTransaction(database, (context) =>
      createWallet(context, { chain_type: 'ethereum' }),
    );
    const first = halfDone(database, (context) =>
      updateWallet(context, wallet.id, { additional_signers: [{ signer_id: quorum.id }] }),
    );
    await first.done;
    const second = inTransaction(database, (context) =>
      updateWallet(context, wallet.id, { additional_signers: [] }),
    );
    await aMoment();
    await first.commit();
    expect((await second).additional_signers).toBe('[]');
    const em = database.orm.em.fork() as SqlEntityManager;
    const rows = await em.getKysely<Tables>().selectFrom('wallet_signers').selectAll().execute();
    expect(rows).toEqual([]);
  });

  test("creating a wallet while its owner's quorum is deleted creates a new quorum", async () => {
    await using database = await openTestDatabase(kind);
    const ownedByKey = { chain_type: 'ethereum', owner: { public_key: PUBLIC_KEY } } as const;
    const before = await inTransaction(database, (context) => createWallet(context, ownedByKey));
    const ownerId = String(before.owner_id);
    await inTransaction(database, ({ em }) =>
      em.getKysely<Tables>().deleteFrom('wallets').where('id', '=', before.id).execute(),
    );
    // The statements of `deleteKeyQuorum`, without the required signature.
    const deletion = halfDone(database, async (context) => {
      await lockKeyQuorum(context, ownerId);
      await context.em.getKysely<Tables>().deleteFrom('key_quorums').where('id', '=', ownerId).execute();
    });
    await deletion.done;
    const making = inTransaction(database, (context) => createWallet(context, ownedByKey));
    await aMoment();
    await deletion.commit();
    const { owner_id: newOwnerId } = await making;
    const em = database.orm.em.fork() as SqlEntityManager;
    const quorums = await em.getKysely<Tables>().selectFrom('key_quorums').select('id').execute();
    expect(quorums).toEqual([{ id: newOwnerId }]);
  });

  test('a refusal that is stored late does not overwrite the response of completed work', async () => {
    await using database = await openTestDatabase(kind);
    const { keep, begin } = idempotencyKeys();
    const { em, nowMs } = contextOf(database.orm.em.fork() as SqlEntityManager, 'acme');
    const use = { appId: 'acme', key: 'once', fingerprint: 'the same', proof: unsignedProof, nowMs };
    await keep(em, use, { status: 200, text: '{}', signers: [] });
    await keep(em, use, { status: 409, text: '{"error":"late"}', signers: [] });
    expect(await begin(em, use)).toEqual({ status: 200, text: '{}', signers: [] });
    const nextDay = { ...use, nowMs: nowMs + 24 * HOUR_MS };
    await keep(em, nextDay, { status: 409, text: '{"error":"new"}', signers: [] });
    expect(await begin(em, nextDay)).toEqual({ status: 409, text: '{"error":"new"}', signers: [] });
  });
});
