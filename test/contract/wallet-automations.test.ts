import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../mocks/authorization-keys.ts';
import { AutomationEntity } from '../../src/domain/access/automations/automation.entity.ts';
import type { AutomationConfigInput, Wallet } from '../../src/generated/schemas.ts';
import { call, refusal } from '../support/call.ts';
import { databaseKinds } from '../support/databases.ts';
import { asOtherApp } from '../support/other-app.ts';
import { openOperations } from '../support/run-operations.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { makePair, signedByPair } from './policies/owner-signatures.ts';
import { seededStartMs, unknownId } from './policies/rules.ts';

describe('automations', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const usdcOnBase = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
  const toUsdc: AutomationConfigInput = {
    trigger: { type: 'deposit', assets: { mode: 'exclude', values: [{ asset: 'usdc', chain: 'base' }] } },
    action: { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } },
  };
  const resolved = {
    trigger: {
      type: 'deposit',
      assets: { mode: 'exclude', values: [{ asset_address: usdcOnBase, caip2: 'eip155:8453' }] },
    },
    action: { type: 'swap', destination_chain_asset: { asset_address: usdcOnBase, caip2: 'eip155:8453' } },
  };
  const notFound = { status: 404, body: { error: 'Automation not found' } };

  test('an automation is created with names resolved, read, changed and deleted', async () => {
    const { body: made } = await call(sandbox, 'createWalletAutomation', {
      body: { name: 'Everything to USDC', owner_id: null, config: toUsdc },
    });
    const at = new Date(seededStartMs).toISOString();
    expect(made).toEqual({
      id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
      app_id: sandbox.appId,
      name: 'Everything to USDC',
      owner_id: null,
      status: 'enabled',
      config: resolved,
      created_at: at,
      updated_at: at,
    });
    const path = { automation_id: made.id };
    expect((await call(sandbox, 'getWalletAutomation', { path })).body).toEqual(made);
    const native = { trigger: { type: 'deposit', assets: { mode: 'all' } }, action: toUsdc.action } as const;
    const body = { name: null, enabled: false, config: native };
    const { body: changed } = await call(sandbox, 'updateWalletAutomation', { path, body });
    expect(changed).toEqual({
      ...made,
      name: null,
      status: 'disabled',
      config: { ...resolved, trigger: native.trigger },
    });
    expect((await call(sandbox, 'deleteWalletAutomation', { path })).body).toEqual({ success: true });
    expect(await refusal(sandbox, 'getWalletAutomation', { path })).toEqual(notFound);
  });

  test.each([
    ['both names of an asset', { asset: 'usdc', asset_address: usdcOnBase, chain: 'base' }, ''],
    ['neither name of an asset', { chain: 'base', caip2: 'eip155:8453' }, ''],
    ['both names of a chain', { asset: 'usdc', chain: 'base', caip2: 'eip155:8453' }, ''],
    ['no chain', { asset: 'usdc', asset_address: usdcOnBase }, ''],
    ['an unknown chain', { asset: 'usdc', chain: 'moon' }, '/chain'],
    ['an unknown CAIP-2 id', { asset: 'usdc', caip2: 'eip155:2' }, '/caip2'],
    ['an asset that the chain lacks', { asset: 'pol', chain: 'base' }, '/asset'],
    ['an address of another chain type', { asset_address: usdcOnBase, chain: 'solana' }, '/asset_address'],
    ['a native asset where there is none', { asset_address: 'native', chain: 'tempo' }, '/asset_address'],
  ])('automations: %s is refused', async (_, spec, field) => {
    const action = { type: 'swap', destination_chain_asset: spec };
    const answer = await refusal(sandbox, 'createWalletAutomation', {
      body: { owner_id: null, config: { ...toUsdc, action } },
    });
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('invalid_data');
    expect(answer.body.error).toContain(`/config/action/destination_chain_asset${field}:`);
  });

  test('an owner, a vault and fields that do not exist are refused', async () => {
    const { body: made } = await call(sandbox, 'createWalletAutomation', {
      body: { owner_id: null, config: toUsdc },
    });
    const path = { automation_id: made.id };
    const earn = { ...toUsdc, action: { type: 'earn_deposit', vault_id: unknownId } };
    for (const body of [
      { owner_id: unknownId, config: toUsdc },
      { owner_id: null, config: earn },
      { owner_id: null, config: toUsdc, name: '' },
      { owner_id: null, config: toUsdc, color: 'red' },
    ]) {
      for (const answer of [
        await refusal(sandbox, 'createWalletAutomation', { body }),
        await refusal(sandbox, 'updateWalletAutomation', { path, body }),
      ]) {
        expect([answer.status, answer.body.code], JSON.stringify(body)).toEqual([400, 'invalid_data']);
      }
    }
    expect((await refusal(sandbox, 'updateWalletAutomation', { path, body: {} })).status).toBe(400);
    expect((await call(sandbox, 'getWalletAutomation', { path })).body).toEqual(made);
  });

  test('the owner is changed and removed with its signatures, and cannot be deleted while it owns one', async () => {
    const owner_id = await makePair(sandbox);
    const { body: made } = await call(sandbox, 'createWalletAutomation', {
      body: { owner_id, config: toUsdc },
    });
    expect(made.owner_id).toBe(owner_id);
    const quorum = { path: { key_quorum_id: owner_id } };
    const kept = await refusal(sandbox, 'deleteKeyQuorum', quorum, signedByPair);
    expect(kept.body.error).toContain('the owner of an automation');
    const path = { automation_id: made.id };
    const freed = await call(
      sandbox,
      'updateWalletAutomation',
      { path, body: { owner_id: null } },
      signedByPair,
    );
    expect(freed.body.owner_id).toBeNull();
    await call(sandbox, 'deleteKeyQuorum', quorum, signedByPair);
    await call(sandbox, 'updateWalletAutomation', { path, body: { enabled: false } });
  });

  test('automations are listed newest first, page by page; another app sees none', async () => {
    const other = await asOtherApp(sandbox);
    const made: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      const { body } = await call(other, 'createWalletAutomation', {
        body: { owner_id: null, config: toUsdc },
      });
      made.push(body.id);
      sandbox.clock.advance(1);
    }
    const { body: first } = await call(other, 'listWalletAutomations', { query: { limit: 2 } });
    expect(first.data.map(({ id }) => id)).toEqual([made[2], made[1]]);
    const cursor = first.next_cursor!;
    const { body: second } = await call(other, 'listWalletAutomations', { query: { limit: 2, cursor } });
    expect([second.data.map(({ id }) => id), second.next_cursor]).toEqual([[made[0]], null]);
    const { body: own } = await call(sandbox, 'listWalletAutomations', {});
    expect(own.data.filter(({ id }) => made.includes(id))).toEqual([]);
    const path = { automation_id: made[0]! };
    expect(await refusal(sandbox, 'getWalletAutomation', { path })).toEqual(notFound);
    expect(await refusal(sandbox, 'deleteWalletAutomation', { path })).toEqual(notFound);
    expect(await refusal(sandbox, 'updateWalletAutomation', { path, body: { name: 'x' } })).toEqual(notFound);
    const bad = await refusal(sandbox, 'listWalletAutomations', { query: { cursor: made[0] } });
    expect([bad.status, bad.body.code]).toEqual([400, 'invalid_data']);
  });
});

describe('attachments of automations', () => {
  let sandbox: TestSandbox;
  let wallet: Wallet;
  let toUsdc: string;
  let toSol: string;
  beforeAll(async () => {
    sandbox = await startSandbox();
    toUsdc = await makeAutomation('base');
    toSol = await makeAutomation('solana');
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());
  beforeEach(async () => {
    wallet = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body;
  });

  async function makeAutomation(chain: string): Promise<string> {
    const { body } = await call(sandbox, 'createWalletAutomation', {
      body: {
        owner_id: null,
        config: {
          trigger: { type: 'deposit', assets: { mode: 'all' } },
          action: { type: 'swap', destination_chain_asset: { asset: 'usdc', chain } },
        },
      },
    });
    return body.id;
  }

  const pathOf = ({ id }: Pick<Wallet, 'id'>) => ({ wallet_id: id });
  const solanaAddress = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM';
  const alice = { signWith: [aliceKey.privateKey] };

  async function attachedTo(walletId: string): Promise<string[]> {
    const { body } = await call(sandbox, 'listWalletAutomations', { query: { wallet_id: walletId } });
    return body.data.map(({ id }) => id);
  }

  test('automations are attached once each, and detached', async () => {
    const path = pathOf(wallet);
    const params = { destination_address: solanaAddress };
    await call(sandbox, 'attachWalletAutomations', { path, body: { automation_ids: [toSol], params } });
    const { body } = await call(sandbox, 'attachWalletAutomations', {
      path,
      body: { automation_ids: [toUsdc] },
    });
    const at = new Date(seededStartMs).toISOString();
    expect(body.data).toEqual([
      {
        id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
        automation_id: toUsdc,
        wallet_id: wallet.id,
        status: 'enabled',
        params: null,
        created_at: at,
        updated_at: at,
      },
    ]);
    const again = await call(sandbox, 'attachWalletAutomations', {
      path,
      body: { automation_ids: [toUsdc, toUsdc] },
    });
    expect(again.body).toEqual(body);
    expect((await attachedTo(wallet.id)).sort()).toEqual([toUsdc, toSol].sort());
    const { body: shown } = await call(sandbox, 'getWallet', { path });
    expect(shown.automations?.map(({ enabled }) => enabled)).toEqual([true, true]);
    const detach = { path, body: { automation_ids: [toUsdc, unknownId] } };
    expect((await call(sandbox, 'detachWalletAutomations', detach)).body).toEqual({ success: true });
    expect(await attachedTo(wallet.id)).toEqual([toSol]);
  });

  test.each<[string, () => object, string]>([
    ['an unknown automation', () => ({ automation_ids: [toUsdc, unknownId] }), '/automation_ids/1:'],
    ['proceeds on a chain that the wallet is not on', () => ({ automation_ids: [toSol] }), '/params:'],
    [
      'an address of another chain type',
      () => ({ automation_ids: [toUsdc], params: { destination_address: solanaAddress } }),
      '/params/destination_address:',
    ],
  ])('%s is refused', async (_, body, field) => {
    const answer = await refusal(sandbox, 'attachWalletAutomations', { path: pathOf(wallet), body: body() });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_data']);
    expect(answer.body.error).toContain(field);
    expect(await attachedTo(wallet.id)).toEqual([]);
  });

  test('an automation and a wallet of another app are unknown', async () => {
    const other = await asOtherApp(sandbox);
    const { body: theirs } = await call(other, 'createWallet', { body: { chain_type: 'ethereum' } });
    const body = { automation_ids: [toUsdc] };
    expect(await refusal(other, 'attachWalletAutomations', { path: pathOf(theirs), body })).toMatchObject({
      status: 400,
      body: { code: 'invalid_data' },
    });
    for (const operation of ['attachWalletAutomations', 'detachWalletAutomations'] as const) {
      expect((await refusal(other, operation, { path: pathOf(wallet), body })).status).toBe(404);
    }
  });

  test('an app has at most 100 automations, a wallet at most 20 of them', async () => {
    const other = await asOtherApp(sandbox);
    const action = { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } } as const;
    const config = { trigger: { type: 'deposit', assets: { mode: 'all' } }, action } as const;
    const input = { body: { owner_id: null, config } };
    const ids: string[] = [];
    for (let count = 0; count < 100; count += 1) {
      ids.push((await call(other, 'createWalletAutomation', input)).body.id);
    }
    const tooMany = { status: 400, body: { code: 'invalid_request' } };
    expect(await refusal(other, 'createWalletAutomation', input)).toMatchObject(tooMany);
    const { body: theirs } = await call(other, 'createWallet', { body: { chain_type: 'ethereum' } });
    const attach = (automation_ids: string[]) => ({ path: pathOf(theirs), body: { automation_ids } });
    expect(await refusal(other, 'attachWalletAutomations', attach(ids.slice(0, 21)))).toMatchObject(tooMany);
    await call(other, 'attachWalletAutomations', attach(ids.slice(0, 20)));
    expect(await refusal(other, 'attachWalletAutomations', attach(ids.slice(20, 21)))).toMatchObject(tooMany);
    await call(other, 'deleteWalletAutomation', { path: { automation_id: ids[0]! } });
    await call(other, 'createWalletAutomation', input);
    await call(other, 'attachWalletAutomations', attach(ids.slice(20, 21)));
  });

  test('an additional signer cannot attach', async () => {
    const { body: signer } = await call(sandbox, 'createKeyQuorum', {
      body: { public_keys: [bobKey.publicKey] },
    });
    const { body: owned } = await call(sandbox, 'createWallet', {
      body: {
        chain_type: 'ethereum',
        owner: { public_key: aliceKey.publicKey },
        additional_signers: [{ signer_id: signer.id }],
      },
    });
    const input = { path: pathOf(owned), body: { automation_ids: [toUsdc] } };
    const refused = await refusal(sandbox, 'attachWalletAutomations', input, {
      signWith: [bobKey.privateKey],
    });
    expect(refused.body.code).toBe('zero_correct_authorization_signatures');
    await call(sandbox, 'attachWalletAutomations', input, alice);
  });

  test('deleting an automation detaches it; disabling it does not', async () => {
    const automation = await makeAutomation('base');
    const path = pathOf(wallet);
    await call(sandbox, 'attachWalletAutomations', { path, body: { automation_ids: [automation] } });
    await call(sandbox, 'updateWalletAutomation', {
      path: { automation_id: automation },
      body: { enabled: false },
    });
    const { body: shown } = await call(sandbox, 'getWallet', { path });
    expect(shown.automations).toEqual([{ id: automation, enabled: false }]);
    await call(sandbox, 'deleteWalletAutomation', { path: { automation_id: automation } });
    expect((await call(sandbox, 'getWallet', { path })).body.automations).toBeUndefined();
  });

  describe('attachments end', () => {
    let owned: Wallet;
    beforeEach(async () => {
      owned = (
        await call(sandbox, 'createWallet', {
          body: { chain_type: 'ethereum', owner: { public_key: aliceKey.publicKey } },
        })
      ).body;
      const input = { path: pathOf(owned), body: { automation_ids: [toUsdc] } };
      await call(sandbox, 'attachWalletAutomations', input, alice);
      expect(await attachedTo(owned.id)).toEqual([toUsdc]);
    });

    test('with a change of the owner, not with another change', async () => {
      const path = pathOf(owned);
      await call(sandbox, 'updateWallet', { path, body: { display_name: 'Ours' } }, alice);
      expect(await attachedTo(owned.id)).toEqual([toUsdc]);
      await call(sandbox, 'updateWallet', { path, body: { owner: { public_key: bobKey.publicKey } } }, alice);
      expect(await attachedTo(owned.id)).toEqual([]);
    });

    test('attachments end with archiving, also if the wallet is restored', async () => {
      await call(sandbox, 'archiveWallet', { path: pathOf(owned) }, alice);
      expect(await attachedTo(owned.id)).toEqual([]);
    });

    test('attachments end with export, after which nothing can be attached', async () => {
      const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const recipient = publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
      const body = { encryption_type: 'HPKE', recipient_public_key: recipient } as const;
      await call(sandbox, 'exportWallet', { path: pathOf(owned), body }, alice);
      expect(await attachedTo(owned.id)).toEqual([]);
      const input = { path: pathOf(owned), body: { automation_ids: [toUsdc] } };
      const refused = await refusal(sandbox, 'attachWalletAutomations', input, alice);
      expect([refused.status, refused.body.code]).toEqual([400, 'invalid_state']);
    });
  });
});

describe('the limit of attachments, at once', () => {
  const action = { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } };
  const input = {
    body: { owner_id: null, config: { trigger: { type: 'deposit', assets: { mode: 'all' } }, action } },
  };

  test.each(databaseKinds)('of four automations created at once, one is the hundredth: %s', async (kind) => {
    await using operations = await openOperations(kind, { poolSize: 5 });
    const create = async () => (await operations.run('createWalletAutomation', input)).status;
    expect(await create()).toBe(200);
    const em = operations.database.orm.em.fork();
    const [first] = await em.find(AutomationEntity, {});
    await em.insertMany(
      AutomationEntity,
      Array.from({ length: 98 }, (_, index) => ({ ...first!, id: `copy-${index}` })),
    );
    // Connections are opened when they are first needed, and that takes longer than a request.
    const wait = () => operations.database.orm.em.fork().execute('select pg_sleep(0.1)');
    if (kind === 'postgres') await Promise.all([wait(), wait(), wait(), wait()]);
    const statuses = await Promise.all([create(), create(), create(), create()]);
    expect(statuses.sort()).toEqual([200, 400, 400, 400]);
  });
});
