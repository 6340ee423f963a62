import { expect } from 'vitest';
import type { Tables } from '../../../src/domain/tables.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import type { TestOperations } from '../run-operations.ts';
import { clientsOf, inDatabase, type Key, keyOf } from './login-clients.ts';
import { newOwner } from './owner.ts';

type Rows = Record<string, Record<string, unknown>>;
type Named = readonly [column: string, value: string];

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };

/** Wallets of one app, and an attacker who can write to its database. */
export function keptWallets(server: TestOperations) {
  const clients = clientsOf(server);
  const thief = keyOf(newOwner());

  const made = async (id: OperationId, body: object) => (await clients.done(id, { body })).id!;
  const quorumOf = (key: Key) => made('createKeyQuorum', { public_keys: [key.publicKey] });
  const change = (walletId: string, body: object, ...by: Key[]) =>
    clients.done('updateWallet', { path: { wallet_id: walletId }, body }, ...by);

  async function signs(walletId: string, ...by: Key[]): Promise<number> {
    return (await clients.run('walletRpc', { path: { wallet_id: walletId }, body: hello }, ...by)).status;
  }

  async function write(table: keyof Tables & string, [column, value]: Named, values: Rows[string]) {
    const result = await inDatabase(server, (em) =>
      em.getKysely<Rows>().updateTable(table).set(values).where(column, '=', value).executeTakeFirst(),
    );
    expect(result.numUpdatedRows).toBe(1n);
  }

  function rowOf(table: keyof Tables & string, [column, value]: Named) {
    return inDatabase(server, (em) =>
      em.getKysely<Rows>().selectFrom(table).selectAll().where(column, '=', value).executeTakeFirstOrThrow(),
    );
  }

  /** Expects that the owner can use the wallet, and that an attacker who can only write to the database cannot. */
  async function expectKept(walletId: string, by: Key): Promise<void> {
    expect(await signs(walletId, by)).toBe(200);
    expect(await signs(walletId, thief)).toBe(401);
    const ofWallet = ['id', walletId] as const;
    const ofKey = ['wallet_id', walletId] as const;
    const { owner_id: ownerId, additional_signers: signers } = await rowOf('wallets', ofWallet);
    const { authority } = await rowOf('wallet_keys', ofKey);
    const theirs = await quorumOf(thief);
    const theft = { owner: { public_key: thief.publicKey } };
    await write('wallets', ofWallet, { owner_id: theirs });
    await expect(signs(walletId, thief)).rejects.toThrow('lacks signatures');
    await expect(change(walletId, theft, thief)).rejects.toThrow('lacks signatures');
    await write('wallets', ofWallet, { owner_id: null });
    await expect(signs(walletId)).rejects.toThrow('a request that the owner has signed');
    await expect(change(walletId, theft)).rejects.toThrow('a request that the owner has signed');
    // The attack also fails through the path by which a key gets its first authority.
    await write('wallet_keys', ofKey, { authority: null });
    await expect(signs(walletId)).rejects.toThrow('cannot be opened');
    await expect(change(walletId, theft)).rejects.toThrow('cannot be opened');
    await write('wallet_keys', ofKey, { authority });
    const asSigner = JSON.stringify([{ signer_id: theirs }]);
    await write('wallets', ofWallet, { owner_id: ownerId, additional_signers: asSigner });
    await expect(signs(walletId, thief)).rejects.toThrow('lacks signatures');
    await write('wallets', ofWallet, { additional_signers: signers });
    expect(await signs(walletId, by)).toBe(200);
  }

  return { ...clients, made, quorumOf, change, signs, write, rowOf, expectKept };
}
