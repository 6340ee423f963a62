import { randomBytes } from 'node:crypto';
import { bytesToHex } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../mocks/authorization-keys.ts';
import { call, refusal } from '../support/call.ts';
import { asOtherApp } from '../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { prepareImport } from './wallets/keys/importing.ts';

describe('organizations', () => {
  const start = Date.UTC(2026, 0, 1);
  const absent = { status: 404, body: { error: 'Organization not found' } };
  const nowhere = `c${'0'.repeat(24)}`;

  async function makeQuorum(sandbox: TestSandbox, publicKey = aliceKey.publicKey): Promise<string> {
    return (await call(sandbox, 'createKeyQuorum', { body: { public_keys: [publicKey] } })).body.id;
  }

  async function makeOrganization(sandbox: TestSandbox, display_name = 'Acme Europe') {
    const default_key_quorum_id = await makeQuorum(sandbox);
    return (await call(sandbox, 'createOrganization', { body: { display_name, default_key_quorum_id } }))
      .body;
  }

  test('an organization is created, read, changed and deleted', async () => {
    await using sandbox = await startSandbox();
    const made = await makeOrganization(sandbox);
    const path = { organization_id: made.id };
    expect(made).toEqual({
      id: expect.stringMatching(/^c[0-9a-z]{24}$/),
      display_name: 'Acme Europe',
      default_key_quorum_id: made.default_key_quorum_id,
      created_at: start,
      updated_at: start,
    });
    expect((await call(sandbox, 'getOrganization', { path })).body).toEqual(made);

    sandbox.clock.advance(60_000);
    const renamed = await call(sandbox, 'updateOrganization', { path, body: { display_name: 'Acme EMEA' } });
    expect(renamed.body).toEqual({ ...made, display_name: 'Acme EMEA', updated_at: start + 60_000 });
    const default_key_quorum_id = await makeQuorum(sandbox, bobKey.publicKey);
    const changed = await call(sandbox, 'updateOrganization', { path, body: { default_key_quorum_id } });
    expect(changed.body).toEqual({ ...renamed.body, default_key_quorum_id });

    const deleted = await call(sandbox, 'deleteOrganization', { path });
    expect({ status: deleted.status, body: deleted.body }).toEqual({ status: 204, body: undefined });
    expect(await refusal(sandbox, 'getOrganization', { path })).toEqual(absent);
    expect(await refusal(sandbox, 'deleteOrganization', { path })).toEqual(absent);
  });

  test('pages go from the newest to the oldest', async () => {
    await using sandbox = await startSandbox();
    const ids: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      sandbox.clock.advance(1);
      ids.unshift((await makeOrganization(sandbox, name)).id);
    }
    const first = await call(sandbox, 'listOrganizations', { query: { limit: 2 } });
    expect(first.body.data.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(first.body.next_cursor).toBe(ids[1]);
    const second = await call(sandbox, 'listOrganizations', { query: { limit: 2, cursor: ids[1]! } });
    expect(second.body).toMatchObject({ data: [{ id: ids[2] }], next_cursor: null });
    for (const cursor of [nowhere, 'X']) {
      const { status, body } = await refusal(sandbox, 'listOrganizations', { query: { cursor } });
      expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
    }
    const other = await asOtherApp(sandbox);
    expect((await call(other, 'listOrganizations', {})).body).toEqual({ data: [], next_cursor: null });
  });

  test('an organization of another app is not found by any operation', async () => {
    await using sandbox = await startSandbox();
    const { id } = await makeOrganization(sandbox);
    const other = await asOtherApp(sandbox);
    const bodies = {
      getOrganization: undefined,
      updateOrganization: { display_name: 'x' },
      deleteOrganization: undefined,
      createOrganizationSecret: undefined,
      listOrganizationSecrets: undefined,
      revokeOrganizationSecret: { secret_id: 'x' },
      updateOrganizationSecretSigningKey: { secret_id: 'x', signing_public_key: null },
    } as const;
    for (const [operation, body] of Object.entries(bodies)) {
      for (const [caller, organization_id] of [
        [other, id],
        [sandbox, nowhere],
      ] as const) {
        const input = { path: { organization_id }, ...(body === undefined ? {} : { body }) };
        expect(await refusal(caller, operation as keyof typeof bodies, input), operation).toEqual(absent);
      }
    }
  });

  test('an unknown key quorum, a missing name and an empty change are refused', async () => {
    await using sandbox = await startSandbox();
    const { id, default_key_quorum_id } = await makeOrganization(sandbox);
    const missing = 'a'.repeat(24);
    const creations = [
      { display_name: 'x', default_key_quorum_id: missing },
      { display_name: '', default_key_quorum_id },
      { display_name: 'x'.repeat(257), default_key_quorum_id },
      { display_name: 'x' },
      { display_name: 'x', default_key_quorum_id, owner_id: missing },
    ];
    for (const body of creations) {
      const refused = await refusal(sandbox, 'createOrganization', { body });
      expect({ status: refused.status, code: refused.body.code }).toEqual({
        status: 400,
        code: 'invalid_data',
      });
    }
    for (const body of [{}, { default_key_quorum_id: missing }, { display_name: '' }]) {
      const refused = await refusal(sandbox, 'updateOrganization', { path: { organization_id: id }, body });
      expect({ status: refused.status, code: refused.body.code }).toEqual({
        status: 400,
        code: 'invalid_data',
      });
    }
  });

  test('the default key quorum owns wallets without an explicit owner, and cannot be deleted', async () => {
    await using sandbox = await startSandbox();
    const { id, default_key_quorum_id } = await makeOrganization(sandbox);
    const entity = { id, type: 'organization' as const };
    const owned = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', entity } });
    expect(owned.body).toMatchObject({ owner_id: default_key_quorum_id, entity });
    const bobs = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', entity, owner: { public_key: bobKey.publicKey } },
    });
    expect(bobs.body.owner_id).not.toBe(default_key_quorum_id);
    const nobodys = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', entity, owner: null } as never,
    });
    expect(nobodys.body.owner_id).toBeNull();
    const listed = await call(sandbox, 'listWallets', { query: { entity_id: id } });
    expect(listed.body.data).toHaveLength(3);

    const quorum = await makeQuorum(sandbox, bobKey.publicKey);
    const path = { organization_id: id };
    await call(sandbox, 'updateOrganization', { path, body: { default_key_quorum_id: quorum } });
    const refused = await refusal(
      sandbox,
      'deleteKeyQuorum',
      { path: { key_quorum_id: quorum } },
      { signWith: [bobKey.privateKey] },
    );
    expect({ status: refused.status, code: refused.body.code }).toEqual({
      status: 400,
      code: 'authorization_key_has_associated_wallets',
    });

    await call(sandbox, 'deleteOrganization', { path });
    const kept = await call(sandbox, 'getWallet', { path: { wallet_id: owned.body.id } });
    expect(kept.body).toMatchObject({ owner_id: default_key_quorum_id, entity });
    const late = await refusal(sandbox, 'createWallet', { body: { chain_type: 'ethereum', entity } });
    expect(late).toEqual({
      status: 400,
      body: {
        error: `/entity/id: no organization \`${id}\` in this app`,
        code: 'invalid_data',
        data: {
          issues: [{ in: 'body', pointer: '/entity/id', message: `no organization \`${id}\` in this app` }],
        },
      },
    });
  });

  test('an organization can have at most 150 wallets, created for it or assigned to it', async () => {
    await using sandbox = await startSandbox();
    const { id } = await makeOrganization(sandbox);
    const entity = { id, type: 'organization' as const };
    const wallets = Array.from({ length: 75 }, () => ({ chain_type: 'xrpl' as const, entity }));
    for (const _ of [1, 2]) await call(sandbox, 'createWalletsBatch', { body: { wallets } });
    const full = {
      status: 409,
      body: { error: 'the organization already has 150 wallets', code: 'wallet_entity_limit_exceeded' },
    };
    expect(await refusal(sandbox, 'createWallet', { body: { chain_type: 'xrpl', entity } })).toEqual(full);
    const secret = randomBytes(32);
    const imported = await prepareImport(sandbox, {
      chain_type: 'ethereum',
      address: privateKeyToAddress(bytesToHex(secret)),
      secret,
      entity,
    });
    expect(await refusal(sandbox, 'submitWalletImport', { body: imported })).toEqual(full);
    const { body } = await call(sandbox, 'createWallet', { body: { chain_type: 'xrpl' } });
    const path = { wallet_id: body.id };
    expect(await refusal(sandbox, 'assignWalletEntity', { path, body: entity })).toEqual(full);
    const empty = await makeOrganization(sandbox, 'Acme Asia');
    const assigned = await call(sandbox, 'assignWalletEntity', {
      path,
      body: { id: empty.id, type: 'organization' },
    });
    expect(assigned.body).toMatchObject({
      wallet_id: body.id,
      entity: { id: empty.id, type: 'organization' },
    });
    expect((await call(sandbox, 'getWallet', { path })).body.owner_id).toBeNull();
    expect(await refusal(sandbox, 'assignWalletEntity', { path, body: entity })).toEqual({
      status: 409,
      body: { error: 'the wallet already belongs to an entity', code: 'wallet_entity_already_set' },
    });
  });
});

describe('secrets of an organization', () => {
  async function makeOrganization(sandbox: TestSandbox): Promise<{ organization_id: string }> {
    const quorum = await call(sandbox, 'createKeyQuorum', { body: { public_keys: [aliceKey.publicKey] } });
    const { body } = await call(sandbox, 'createOrganization', {
      body: { display_name: 'Acme Europe', default_key_quorum_id: quorum.body.id },
    });
    return { organization_id: body.id };
  }

  const absent = { status: 404, body: { error: 'Organization secret not found' } };

  test('a secret is shown once, listed by its last characters, and stays listed after it is revoked', async () => {
    await using sandbox = await startSandbox();
    const path = await makeOrganization(sandbox);
    const { body: first } = await call(sandbox, 'createOrganizationSecret', { path });
    expect(first).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      last_four: first.organization_secret.slice(-4),
      created_at: '2026-01-01T00:00:00.000Z',
      revoked_at: null,
      signing_public_key: null,
      organization_secret: expect.stringMatching(/^org_secret_[\w-]{43}$/),
    });
    sandbox.clock.advance(1000);
    const { body: second } = await call(sandbox, 'createOrganizationSecret', { path });
    expect(second.organization_secret).not.toBe(first.organization_secret);

    const shown = ({ organization_secret: _, ...secret }: typeof first) => secret;
    expect((await call(sandbox, 'listOrganizationSecrets', { path })).body).toEqual({
      data: [shown(second), shown(first)],
    });
    const revoke = { path, body: { secret_id: first.id } };
    expect((await call(sandbox, 'revokeOrganizationSecret', revoke)).body).toEqual({ success: true });
    sandbox.clock.advance(1000);
    expect((await call(sandbox, 'revokeOrganizationSecret', revoke)).body).toEqual({ success: true });
    expect((await call(sandbox, 'listOrganizationSecrets', { path })).body.data).toEqual([
      shown(second),
      { ...shown(first), revoked_at: '2026-01-01T00:00:01.000Z' },
    ]);
  });

  test('a secret is bound to a signing key and unbound again, unless it is revoked', async () => {
    await using sandbox = await startSandbox();
    const path = await makeOrganization(sandbox);
    const { body: secret } = await call(sandbox, 'createOrganizationSecret', { path });
    const bind = (signing_public_key: string | null) => ({
      path,
      body: { secret_id: secret.id, signing_public_key },
    });
    const listed = async () => (await call(sandbox, 'listOrganizationSecrets', { path })).body.data[0];

    const pem = `-----BEGIN PUBLIC KEY-----\n${aliceKey.publicKey}\n-----END PUBLIC KEY-----`;
    await call(sandbox, 'updateOrganizationSecretSigningKey', bind(pem));
    expect(await listed()).toMatchObject({ signing_public_key: aliceKey.publicKey });
    const { status, body } = await refusal(sandbox, 'updateOrganizationSecretSigningKey', bind('no key'));
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
    await call(sandbox, 'updateOrganizationSecretSigningKey', bind(null));
    expect(await listed()).toMatchObject({ signing_public_key: null });

    await call(sandbox, 'revokeOrganizationSecret', { path, body: { secret_id: secret.id } });
    expect(await refusal(sandbox, 'updateOrganizationSecretSigningKey', bind(pem))).toEqual(absent);
  });

  test('a secret of another organization is not found', async () => {
    await using sandbox = await startSandbox();
    const [path, other] = [await makeOrganization(sandbox), await makeOrganization(sandbox)];
    const { body } = await call(sandbox, 'createOrganizationSecret', { path: other });
    for (const secret_id of [body.id, 'x', '7c1e4a90-2b6d-4f38-9a57-d0e3c8b1f264']) {
      expect(await refusal(sandbox, 'revokeOrganizationSecret', { path, body: { secret_id } })).toEqual(
        absent,
      );
      expect(
        await refusal(sandbox, 'updateOrganizationSecretSigningKey', {
          path,
          body: { secret_id, signing_public_key: null },
        }),
      ).toEqual(absent);
    }
  });
});
