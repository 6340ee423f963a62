import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import { rotateSealedKeys } from '../../../src/admin/rotate-keys.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type RunInput, type TestOperations } from '../../support/run-operations.ts';
import { newOwner, type Owner } from '../../support/signer/owner.ts';

// Someone who can write to the database, and has the key of an additional signer that a policy limits.

const [owner, clerk, admin] = [newOwner(), newOwner(), newOwner()];
const ruleFor = (message: string) => ({
  name: message,
  method: 'personal_sign',
  action: 'ALLOW',
  conditions: [{ field_source: 'message', field: 'content', operator: 'eq', value: message }],
});
const anything = { name: 'any', method: '*', action: 'ALLOW', conditions: [] };

describe.each(databaseKinds)('on %s', (kind) => {
  let server: TestOperations;
  beforeAll(async () => {
    server = await openOperations(kind);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function run(id: OperationId, input: RunInput, by?: Owner) {
    const key = by?.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
    const answer = await server.run(id, { ...input, ...(key === undefined ? {} : { signWith: [key] }) });
    expect(answer.body).toEqual(expect.anything());
    return answer as { status: number; body: { id: string; rules: { id: string }[] } };
  }

  async function made(id: OperationId, body: object): Promise<string> {
    const answer = await run(id, { body });
    expect(answer.status).toBe(200);
    return answer.body.id;
  }

  const policyOf = (rules: object[], by?: Owner): Promise<string> =>
    made('createPolicy', {
      ...{ version: '1.0', name: 'limits', chain_type: 'ethereum', rules },
      ...(by === undefined ? {} : { owner: { public_key: by.publicKey } }),
    });

  /** A wallet whose clerk is limited by the policy. */
  async function walletUnder(policyId: string): Promise<string> {
    const signerId = await made('createKeyQuorum', { public_keys: [clerk.publicKey] });
    return made('createWallet', {
      ...{ chain_type: 'ethereum', owner: { public_key: owner.publicKey } },
      additional_signers: [{ signer_id: signerId, override_policy_ids: [policyId] }],
    });
  }

  async function signs(walletId: string, message: string, by = clerk): Promise<number> {
    const body = { method: 'personal_sign', params: { message, encoding: 'utf-8' } };
    return (await run('walletRpc', { path: { wallet_id: walletId }, body }, by)).status;
  }

  type Rows = Record<string, Record<string, unknown>>;

  async function inDatabase<T>(work: (em: OperationContext['em']) => Promise<T>): Promise<T> {
    return server.database.orm.em.fork().transactional((em) => work(em as OperationContext['em']));
  }

  /** Writes to a row behind the back of the server. Result: what was there, and how it gets there again. */
  async function alter(table: keyof Tables & string, id: string, change: Record<string, unknown>) {
    const key = sql.ref(table === 'wallet_keys' ? 'wallet_id' : 'id');
    const write = (values: Record<string, unknown>) =>
      inDatabase((em) => em.getKysely<Rows>().updateTable(table).set(values).where(key, '=', id).execute());
    const before = await rowOf(table, id, Object.keys(change));
    await write(change);
    return { before, undo: () => write(before) };
  }

  function rowOf(table: keyof Tables & string, id: string, columns: string[]) {
    const key = sql.ref(table === 'wallet_keys' ? 'wallet_id' : 'id');
    return inDatabase((em) =>
      em.getKysely<Rows>().selectFrom(table).select(columns).where(key, '=', id).executeTakeFirstOrThrow(),
    );
  }

  test('rows that are written behind the back of the server do not loosen a policy', async () => {
    const policyId = await policyOf([ruleFor('hello')], admin);
    const walletId = await walletUnder(policyId);
    const looseId = await policyOf([anything], admin);
    expect(await signs(walletId, 'hello')).toBe(200);
    expect(await signs(walletId, 'robbery')).toBe(400);
    expect(await signs(walletId, 'robbery', owner)).toBe(200);

    const rules = JSON.stringify([{ id: 'x', ...anything }]);
    // The server believes its database from here on, and the key store does not.
    const loosened = await alter('policies', policyId, { rules, rules_digest: `loose ${kind}` });
    await expect(signs(walletId, 'robbery')).rejects.toThrow('does not allow');
    const columns = ['content', 'name', 'sealed_secret', 'wrapped_data_key'];
    const loose = await rowOf('policy_seals', looseId, columns);
    const content = String(loose.content).replaceAll(looseId, policyId);
    const authority = JSON.parse(
      String((await rowOf('wallet_keys', walletId, ['authority'])).authority),
    ) as object;
    const unpinned = { ...authority, policies: { wallet: null, signers: [null] } };
    const attacks = [
      ['policy_seals', policyId, loose],
      ['policy_seals', policyId, { content }],
      ['policy_seals', policyId, { ...loose, content }],
      ['policy_seals', policyId, { app_id: 'another' }],
      ['wallet_keys', walletId, { authority: null }],
      ['wallet_keys', walletId, { authority: JSON.stringify({ ...authority, policies: undefined }) }],
      ['wallet_keys', walletId, { authority: JSON.stringify(unpinned) }],
    ] as const;
    for (const [table, id, change] of attacks) {
      const { undo } = await alter(table, id, change);
      await expect(signs(walletId, 'robbery'), JSON.stringify(change)).rejects.toThrow();
      await undo();
    }
    // Without its policy in the wallet's row, the signer has it where it counts.
    const signers = String((await rowOf('wallets', walletId, ['additional_signers'])).additional_signers);
    const [{ signer_id }] = JSON.parse(signers) as [{ signer_id: string }];
    const dropped = await alter('wallets', walletId, { additional_signers: JSON.stringify([{ signer_id }]) });
    await expect(signs(walletId, 'robbery')).rejects.toThrow('does not allow');
    await dropped.undo();
    await loosened.undo();
    expect(await signs(walletId, 'hello')).toBe(200);
  });

  test('what the owner of a policy changes, and the owner of the wallet, counts at once', async () => {
    const policyId = await policyOf([ruleFor('hello')], admin);
    const walletId = await walletUnder(policyId);
    const path = { policy_id: policyId };
    const body = ruleFor('more');
    expect((await run('createPolicyRule', { path, body }, clerk)).status).toBe(401);
    const added = await run('createPolicyRule', { path, body }, admin);
    expect(await signs(walletId, 'more')).toBe(200);
    const rulePath = { ...path, rule_id: added.body.id };
    await run('updatePolicyRule', { path: rulePath, body: ruleFor('other') }, admin);
    expect([await signs(walletId, 'more'), await signs(walletId, 'other')]).toEqual([400, 200]);
    expect((await run('deletePolicyRule', { path: rulePath }, admin)).status).toBe(200);
    expect([await signs(walletId, 'other'), await signs(walletId, 'hello')]).toEqual([400, 200]);
    await run('updatePolicy', { path, body: { rules: [ruleFor('new')] } }, admin);
    expect([await signs(walletId, 'hello'), await signs(walletId, 'new')]).toEqual([400, 200]);
    await run('updatePolicy', { path, body: { name: 'renamed' } }, admin);
    await run('updatePolicy', { path, body: { owner: { public_key: owner.publicKey } } }, admin);
    await run('updatePolicy', { path, body: { rules: [ruleFor('newer')] } }, owner);
    expect(await signs(walletId, 'newer')).toBe(200);

    const free = { additional_signers: [], policy_ids: [policyId] };
    await run('updateWallet', { path: { wallet_id: walletId }, body: free }, owner);
    expect([await signs(walletId, 'newer', owner), await signs(walletId, 'hello', owner)]).toEqual([
      200, 400,
    ]);
    await run('updateWallet', { path: { wallet_id: walletId }, body: { policy_ids: [] } }, owner);
    expect(await signs(walletId, 'hello', owner)).toBe(200);
    expect((await run('deletePolicy', { path }, owner)).status).toBe(200);
  });

  test('a policy that gets its first owner is kept from then on, where the wallet names it again', async () => {
    const policyId = await policyOf([ruleFor('hello')]);
    const walletId = await walletUnder(policyId);
    const path = { policy_id: policyId };
    await run('updatePolicy', { path, body: { owner: { public_key: admin.publicKey } } });
    const found = await run('getWallet', { path: { wallet_id: walletId } });
    const { additional_signers } = found.body as unknown as { additional_signers: object[] };
    await run('updateWallet', { path: { wallet_id: walletId }, body: { additional_signers } }, owner);
    const rules = JSON.stringify([{ id: 'x', ...anything }]);
    await alter('policies', policyId, { rules, rules_digest: `first owner ${kind}` });
    expect(await signs(walletId, 'hello')).toBe(200);
    await expect(signs(walletId, 'robbery')).rejects.toThrow('does not allow');
  });

  test('a rotation of the master key keeps policies', async () => {
    const policyId = await policyOf([ruleFor('hello')], admin);
    const walletId = await walletUnder(policyId);
    const old = localMasterKey('test', Buffer.alloc(32, 7), systemEntropy);
    const next = localMasterKey('next', Buffer.alloc(32, 8), systemEntropy);
    const both = createKeyStore({ masterKeys: [next, old], entropy: systemEntropy });
    await rotateSealedKeys(both, inUnitOf(unitsOf(server.database)), {
      onProgress: () => undefined,
      record: async () => undefined,
    });
    const alone = createKeyStore({ masterKeys: [next], entropy: systemEntropy });
    const { services } = server;
    const kept = services.keyStore;
    Object.assign(services, { keyStore: { ...alone, isLocal: kept.isLocal ?? false } });
    expect([await signs(walletId, 'hello'), await signs(walletId, 'robbery')]).toEqual([200, 400]);
    Object.assign(services, { keyStore: kept });
  });
});
