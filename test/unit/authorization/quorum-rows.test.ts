import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findKeyQuorum } from '../../../src/domain/access/key-quorums/find-key-quorum.ts';
import { createKeyQuorum, storeMembers } from '../../../src/domain/access/key-quorums/key-quorum.ts';
import { loadQuorumRecords } from '../../../src/domain/access/key-quorums/quorum-records.ts';
import { knownQuorumRows } from '../../../src/domain/access/owners/owner-quorums.ts';
import { requireAuthorization } from '../../../src/domain/access/owners/require-authorization.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openHouse, signer } from './house-of-rows.ts';

const ann = signer(1);
const bob = signer(2);
const cid = signer(3);

describe.each(databaseKinds)('rows of key quorums on %s', (kind) => {
  let house: Awaited<ReturnType<typeof openHouse>>;
  beforeAll(async () => {
    house = await openHouse(kind);
  });
  afterAll(() => house.close());

  const made = () =>
    house.operate((context) => createKeyQuorum(context, { public_keys: [ann.publicKey, bob.publicKey] }));
  const signed = { signatures: [ann.sign(), bob.sign()] };

  test('are read once to count the signatures of a request and to show its signers to the key store', async () => {
    const { id } = await made();
    await house.operate(async (context) => {
      await requireAuthorization(context, { ownerId: id });
      const rows = await knownQuorumRows(context, [id]);
      expect(await knownQuorumRows(context, [id])).toBe(rows);
      const [record] = await loadQuorumRecords(context, [id]);
      expect(record?.base).toMatchObject({ id, publicKeys: [ann.publicKey, bob.publicKey] });
      expect(await knownQuorumRows(context, [id])).toBe(rows);
    }, signed);
  });

  test('are read again for other key quorums, by another app, and in another unit of work', async () => {
    const [one, other] = [await made(), await made()];
    const rows = await house.operate(async (context) => {
      const read = await knownQuorumRows(context, [one.id]);
      expect(await knownQuorumRows({ ...context, app: { id: 'another' } }, [one.id])).toEqual([]);
      expect((await knownQuorumRows(context, [one.id, other.id])).map(({ id }) => id)).toContain(other.id);
      expect(await knownQuorumRows(context, [])).toEqual([]);
      return read;
    });
    expect(rows).toHaveLength(2);
    await house.operate(async (context) => expect(await knownQuorumRows(context, [one.id])).not.toBe(rows));
  });

  test('are read again after the members have changed', async () => {
    const { id } = await made();
    await house.operate(async (context) => {
      await requireAuthorization(context, { ownerId: id });
      const before = await findKeyQuorum(context, id);
      await storeMembers(context, { ...before, publicKeys: [cid.publicKey] });
      expect((await knownQuorumRows(context, [id])).map(({ member }) => member)).toEqual([cid.publicKey]);
    }, signed);
  });
});
