import { randomBytes } from 'node:crypto';
import { encodeFunctionData, parseAbi } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { beforeEach, describe, expect, test } from 'vitest';
import { vaultIdOf } from '../../../src/engine/actions/earn-terms.ts';
import type {
  PolicyContent,
  PolicyRecord,
  WalletPolicies,
} from '../../../src/engine/authorization/policy-seals.ts';
import { type QuorumRecord, quorumReference } from '../../../src/engine/authorization/quorum-records.ts';
import { batchCall, claimCall, routerCall, tokenCall, vaultCall } from '../../support/signer/built-calls.ts';
import {
  type CompromisedServer,
  compromisedServer,
  distributor,
  ofKey,
  router,
  type SealedWallet,
  useOf,
} from '../../support/signer/compromised-server.ts';
import { newOwner, type Owner, signedBy } from '../../support/signer/owner.ts';

// An attacker who controls the server and has the key of an additional signer, which a policy limits. Who owns the
// policy is out of reach.

const nowMs = 1_900_000_000_000;
const [owner, clerk, admin, attacker] = [newOwner(), newOwner(), newOwner(), newOwner()];
const owners = ofKey(owner, 'owners');
const clerks = ofKey(clerk, 'clerks');
const admins = ofKey(admin, 'admins');

let server: CompromisedServer;
beforeEach(async () => {
  server = await compromisedServer(nowMs);
  return server.close;
});

interface SealedPolicy {
  readonly pin: { readonly id: string; readonly seal: string };
  readonly record: PolicyRecord;
  readonly parts: readonly Uint8Array[];
}

const bindingOf = (id: string) => ({ purpose: 'policy', rowId: id, appId: 'acme' });

function recordOf(id: string, content: string, parts: readonly Uint8Array[]): PolicyRecord {
  const [sealedSecret, wrappedDataKey] = parts.map((part) => Buffer.from(part).toString('base64'));
  return {
    id,
    content,
    seal: { sealedSecret: sealedSecret!, wrappedDataKey: wrappedDataKey!, masterKeyId: 'test' },
  };
}

type Rule = Omit<PolicyContent['rules'][number], 'id'>;

async function policyOf(rules: readonly Rule[], by: QuorumRecord | null = admins, id = 'limits') {
  const named = rules.map((rule, index) => ({ id: `rule${index}`, ...rule }));
  const content = {
    chainType: 'ethereum',
    owner: by === null ? null : quorumReference(by.base),
    rules: named,
  };
  const { parts, json } = await server.call('sealPolicy', [], { binding: bindingOf(id), content });
  const { name, content: text } = json as { name: string; content: string };
  return { pin: { id, seal: name }, record: recordOf(id, text, parts), parts } satisfies SealedPolicy;
}

/** Has the signer follow a change, with whatever replaces what an honest server sends. */
async function changed(
  policy: SealedPolicy,
  by: readonly Owner[],
  { method = 'PATCH', at = '', body = {}, ruleIds = ['new'], ...more }: ChangeOf,
): Promise<SealedPolicy> {
  const { id, content } = policy.record;
  const request = { path: `/v1/policies/${id}${at}`, method, body, ...more.request };
  const change = {
    ...{ content, evidence: signedBy(by, request), userKeys: {}, ruleIds },
    quorums: [admins, ofKey(attacker, 'attackers')],
    ...more.forged,
  };
  const json = { key: 'test', binding: bindingOf(id), change };
  const { parts, json: result } = await server.call('changePolicy', policy.parts, json);
  return { ...policy, parts, record: recordOf(id, (result as { content: string }).content, parts) };
}

interface ChangeOf {
  readonly method?: string;
  readonly at?: string;
  readonly body?: object;
  readonly ruleIds?: readonly string[];
  readonly request?: object;
  readonly forged?: object;
}

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
const robbery = { method: 'personal_sign', params: { message: 'all my money', encoding: 'utf-8' } };
const onlyHello: Rule = {
  name: 'hello',
  method: 'personal_sign',
  action: 'ALLOW',
  conditions: [{ field_source: 'message', field: 'content', operator: 'eq', value: 'hello' }],
};
const anything: Rule = { name: 'any', method: '*', action: 'ALLOW', conditions: [] };

const pinned = (policies: Partial<WalletPolicies>): WalletPolicies => ({
  wallet: null,
  signers: ['wallet'],
  ...policies,
});

const walletUnder = (policies: Partial<WalletPolicies>, rowId = 'wallet'): Promise<SealedWallet> =>
  server.walletOf({ owner: owners, signers: [clerks], policies: pinned(policies), rowId });

/** Asks for a signature that `by` has signed the request for. */
async function asks(
  wallet: SealedWallet,
  by: Owner,
  policies: readonly PolicyRecord[],
  asked: { task?: object; body?: object; path?: string; forged?: object } = {},
) {
  const { task = robbery, body = task, path = 'rpc', forged = {} } = asked;
  const evidence = signedBy([by], { path: `/v1/wallets/${wallet.binding.rowId}/${path}`, body });
  return server.signs(wallet, task, { ...useOf(wallet, evidence), policies, ...forged });
}

const denied = 'does not allow this signature';
const notAgreed = 'as its owner has agreed to it';

test('a policy limits who it is for: a signer, or the owner and the signers without one', async () => {
  const limits = await policyOf([onlyHello]);
  const ofClerk = await walletUnder({ signers: [limits.pin] });
  await expect(asks(ofClerk, clerk, [limits.record], { task: hello })).resolves.toHaveProperty('signature');
  await expect(asks(ofClerk, clerk, [limits.record])).rejects.toThrow(denied);
  await expect(asks(ofClerk, owner, [])).resolves.toHaveProperty('signature');
  const ofAll = await walletUnder({ wallet: limits.pin }, 'another');
  for (const by of [owner, clerk]) {
    await expect(asks(ofAll, by, [limits.record], { task: hello })).resolves.toHaveProperty('signature');
    await expect(asks(ofAll, by, [limits.record])).rejects.toThrow(denied);
  }
});

test('a policy that is dropped, exchanged, edited or taken from elsewhere lets nothing through', async () => {
  const limits = await policyOf([onlyHello]);
  const wallet = await walletUnder({ signers: [limits.pin] });
  const loose = await policyOf([anything], admins, 'loose');
  // With the same id and the same owner: the signer seals what the server says a new policy is.
  const twin = await policyOf([anything]);
  const { record } = limits;
  const edit = (content: object) => ({
    ...record,
    content: JSON.stringify({ ...(JSON.parse(record.content) as object), ...content }),
  });
  const { authority } = wallet;
  const forgeries: Record<string, [readonly PolicyRecord[], object?]> = {
    'no policy': [[]],
    'another policy': [[loose.record]],
    'another policy under its id': [[{ ...loose.record, id: 'limits' }]],
    'a new policy with its id': [[twin.record]],
    'the seal of another one': [[{ ...record, seal: twin.record.seal }]],
    'other rules under its seal': [[{ ...record, content: twin.record.content }]],
    'no rules': [[edit({ rules: [] })]],
    'a rule more': [[edit({ rules: [anything] })]],
    'another owner': [[edit({ owner: null })]],
    'an authority without policies': [[record], { authority: { ...authority, policies: undefined } }],
    'a signer without a policy': [
      [record],
      { authority: { ...authority, policies: pinned({ signers: [null] }) } },
    ],
    'the policy of the wallet': [[record], { authority: { ...authority, policies: pinned({}) } }],
    'fewer signers': [[record], { authority: { ...authority, policies: pinned({ signers: [] }) } }],
    'a pin of its own': [
      [twin.record],
      { authority: { ...authority, policies: pinned({ signers: [twin.pin] }) } },
    ],
  };
  for (const [what, [policies, forged = {}]] of Object.entries(forgeries)) {
    await expect(asks(wallet, clerk, policies, { forged }), what).rejects.toThrow();
  }
  await expect(asks(wallet, clerk, [loose.record, record], { task: hello })).resolves.toBeDefined();
  // The secret of a policy does not leave the signer.
  for (const purpose of ['policy', 'webhook-secret', 'ethereum']) {
    const binding = { ...bindingOf('limits'), purpose };
    await expect(server.call('open', limits.parts, { key: 'test', binding })).rejects.toThrow();
  }
});

test('only its owner changes a policy', async () => {
  const limits = await policyOf([onlyHello]);
  const wallet = await walletUnder({ signers: [limits.pin] });
  const body = { rules: [anything] };
  const wide = await changed(limits, [admin], { body });
  await expect(asks(wallet, clerk, [wide.record])).resolves.toHaveProperty('signature');
  const elsewhere = await policyOf([onlyHello], admins, 'elsewhere');
  const forgeries: Record<string, () => Promise<unknown>> = {
    'without signatures': () => changed(limits, [], { body }),
    'by another key': () => changed(limits, [attacker], { body }),
    'by the owner of the wallet': () => changed(limits, [owner], { body }),
    'for another policy': () =>
      changed(limits, [admin], { body, request: { path: '/v1/policies/elsewhere' } }),
    'for another app': () => changed(limits, [admin], { body, request: { appId: 'globex' } }),
    'that has expired': () => changed(limits, [admin], { body, request: { expiryMs: nowMs - 60_001 } }),
    'of a wallet': () => changed(limits, [admin], { body, request: { path: '/v1/wallets/limits' } }),
    'by another method': () => changed(limits, [admin], { body, method: 'POST' }),
    'of rules that it does not have': () =>
      changed(limits, [admin], { body: { name: 'other' }, forged: { content: wide.record.content } }),
    'of a policy with its owner exchanged': () =>
      changed(limits, [attacker], {
        body,
        forged: { quorums: [{ ...admins, base: { ...ofKey(attacker).base, id: 'admins' } }] },
      }),
    'under the seal of another one': () => changed({ ...limits, parts: elsewhere.parts }, [admin], { body }),
  };
  for (const [what, forged] of Object.entries(forgeries)) await expect(forged(), what).rejects.toThrow();
});

test('rules are added, replaced and removed one by one, and the owner may give the policy away', async () => {
  const limits = await policyOf([onlyHello]);
  const wallet = await walletUnder({ signers: [limits.pin] });
  const signs = ({ record }: SealedPolicy, task: object) => asks(wallet, clerk, [record], { task });
  const added = await changed(limits, [admin], { method: 'POST', at: '/rules', body: anything });
  await expect(signs(added, robbery)).resolves.toBeDefined();
  const forbids = { ...onlyHello, action: 'DENY' };
  const replaced = await changed(added, [admin], { at: '/rules/rule0', body: forbids });
  await expect(signs(replaced, hello)).rejects.toThrow(denied);
  await expect(signs(replaced, robbery)).resolves.toBeDefined();
  const removed = await changed(replaced, [admin], { method: 'DELETE', at: '/rules/new' });
  await expect(signs(removed, robbery)).rejects.toThrow(denied);
  await expect(changed(added, [attacker], { method: 'DELETE', at: '/rules/rule0' })).rejects.toThrow('lacks');
  const given = await changed(limits, [admin], { body: { owner: { public_key: attacker.publicKey } } });
  await expect(changed(given, [admin], { body: { rules: [anything] } })).rejects.toThrow('lacks');
  const loosened = await changed(given, [attacker], { body: { rules: [anything] } });
  await expect(signs(loosened, robbery)).resolves.toBeDefined();
  // Without an owner, the app secret changes it.
  const free = await changed(limits, [admin], { body: { owner: null } });
  await expect(changed(free, [], { body: { rules: [anything] } })).resolves.toBeDefined();
});

test('a new rule does not get the id of another one, which would be deleted with it', async () => {
  const limits = await policyOf([onlyHello, { ...onlyHello, action: 'DENY' }]);
  const added = { body: { ...anything }, at: '/rules', method: 'POST' };
  await expect(changed(limits, [admin], { ...added, ruleIds: ['rule1'] })).rejects.toThrow('different ids');
  const whole = { body: { rules: [onlyHello, anything] } };
  await expect(changed(limits, [admin], { ...whole, ruleIds: ['a', 'a'] })).rejects.toThrow('different ids');
  await expect(changed(limits, [admin], { ...whole, ruleIds: ['a', 'b'] })).resolves.toBeDefined();
});

test('only the owner of the wallet exchanges its policies, and a policy that is named again stays', async () => {
  const limits = await policyOf([onlyHello]);
  const twin = await policyOf([anything]);
  const wallet = await walletUnder({ wallet: limits.pin, signers: ['wallet'] });
  const change = async (by: Owner, body: object, pins?: object): Promise<SealedWallet> => {
    const evidence = signedBy([by], { path: '/v1/wallets/wallet', body, method: 'PATCH' });
    const json = { key: 'test', binding: wallet.binding, use: { ...useOf(wallet, evidence), pins } };
    const { parts, json: result } = await server.call('changeAuthority', wallet.parts, json);
    return { ...wallet, parts, authority: (result as { authority: SealedWallet['authority'] }).authority };
  };
  await expect(change(clerk, { policy_ids: [] })).rejects.toThrow('lacks');
  await expect(change(attacker, { policy_ids: [] })).rejects.toThrow('lacks');
  const free = await change(owner, { policy_ids: [] });
  await expect(asks(free, clerk, [])).resolves.toHaveProperty('signature');
  // What the server says of the wallet and of the policy is not asked for.
  const claims = { before: pinned({}), named: [twin.pin] };
  const renewed = [
    await change(owner, { policy_ids: ['limits'] }, claims),
    await change(owner, { additional_signers: [{ signer_id: 'clerks' }] }, claims),
    await change(
      owner,
      { additional_signers: [{ signer_id: 'clerks', override_policy_ids: ['limits'] }] },
      claims,
    ),
  ];
  for (const same of renewed) {
    await expect(asks(same, clerk, [twin.record])).rejects.toThrow(notAgreed);
    await expect(asks(same, clerk, [limits.record])).rejects.toThrow(denied);
    await expect(asks(same, clerk, [limits.record], { task: hello })).resolves.toBeDefined();
  }
  const own = { additional_signers: [{ signer_id: 'clerks', override_policy_ids: [] }] };
  await expect(asks(await change(owner, own), clerk, [])).resolves.toBeDefined();
});

test('a wallet that was sealed without policies gets those that it has with its next change', async () => {
  const limits = await policyOf([onlyHello]);
  const wallet = await server.walletOf({ owner: owners, signers: [clerks] });
  await expect(asks(wallet, clerk, [])).resolves.toHaveProperty('signature');
  const evidence = signedBy([owner], {
    ...{ path: '/v1/wallets/wallet', method: 'PATCH' },
    body: { policy_ids: ['limits'] },
  });
  const pins = { before: pinned({}), named: [limits.pin] };
  const json = { key: 'test', binding: wallet.binding, use: { ...useOf(wallet, evidence), pins } };
  const { parts, json: result } = await server.call('changeAuthority', wallet.parts, json);
  const { authority } = result as { authority: SealedWallet['authority'] };
  expect(authority.policies).toEqual({ wallet: limits.pin, signers: ['wallet'] });
  await expect(asks({ ...wallet, parts, authority }, clerk, [limits.record])).rejects.toThrow(denied);
});

const [friend, thief] = [newAddress(), newAddress()];
const toFriend = (method: string): Rule => ({
  name: 'friend',
  method,
  action: 'ALLOW',
  conditions: [{ field_source: 'ethereum_transaction', field: 'to', operator: 'eq', value: friend }],
});
const filled = { type: 2, chain_id: 1, nonce: 7, gas_limit: '0x5300' };
const fees = { max_fee_per_gas: '0x77359400', max_priority_fee_per_gas: '0x3b9aca00' };
const signing = (transaction: object) => ({
  method: 'eth_signTransaction',
  params: { transaction: { ...filled, ...fees, ...transaction } },
});
const executor = parseAbi(['function execute(bytes32 mode, bytes executionData)']);
const batchMode = `0x01${'00'.repeat(31)}` as const;

/** Calldata of a batch with one call (ERC-7821), which pays without calldata. */
function batchTo(to: string): string {
  const words = ['20', '1', '20', to.slice(2), '1', '60', '0'].map((word) => word.padStart(64, '0')).join('');
  return encodeFunctionData({ abi: executor, functionName: 'execute', args: [batchMode, `0x${words}`] });
}

test('what is sent is judged by what is signed, not by what the request says', async () => {
  const limits = await policyOf(
    ['eth_sendTransaction', 'eth_signTransaction', 'wallet_sendCalls'].map(toFriend),
  );
  const wallet = await walletUnder({ signers: [limits.pin] });
  const attempt = (body: object, task: object, forged: object = {}) =>
    asks(wallet, clerk, [limits.record], { body, task, forged });
  const sends = (to: string) => ({
    ...{ method: 'eth_sendTransaction', caip2: 'eip155:1', params: { transaction: { to, value: '0x1' } } },
  });
  const pays = (to: string) => signing({ to, value: '0x1' });
  await expect(attempt(sends(friend), pays(friend))).resolves.toHaveProperty('signed_transaction');
  await expect(attempt(sends(thief), pays(thief))).rejects.toThrow(denied);
  await expect(attempt(pays(friend), pays(friend))).resolves.toHaveProperty('signed_transaction');
  await expect(attempt(pays(thief), pays(thief))).rejects.toThrow(denied);
  const calls = (to: string) => ({
    ...{ method: 'wallet_sendCalls', caip2: 'eip155:1', params: { calls: [{ to, value: 1 }] } },
  });
  const batch = (to: string, outer = wallet.address) => signing({ to: outer, data: batchTo(to) });
  await expect(attempt(calls(friend), batch(friend))).resolves.toHaveProperty('signed_transaction');
  await expect(attempt(calls(thief), batch(thief))).rejects.toThrow(denied);
  await expect(attempt(calls(friend), batch(friend, thief))).rejects.toThrow(denied);
  await expect(attempt(calls(thief), pays(thief))).rejects.toThrow('asks for something else');
  // The address by which a call to itself is recognized is that of the key.
  await expect(attempt(calls(friend), batch(friend, thief), { address: thief })).rejects.toThrow(
    'the address of',
  );
  await expect(attempt(sends(friend), pays(friend), { address: undefined })).rejects.toThrow(
    'the address of',
  );
});

test('a call to itself is judged by the calls in it', async () => {
  const small: Rule = {
    name: 'small',
    method: 'eth_signTransaction',
    action: 'ALLOW',
    conditions: [{ field_source: 'ethereum_transaction', field: 'value', operator: 'lt', value: '1' }],
  };
  const limits = await policyOf([small]);
  const wallet = await walletUnder({ signers: [limits.pin] });
  // It pays nothing itself, and its call pays a wei.
  const task = signing({ to: wallet.address, data: batchTo(thief) });
  await expect(asks(wallet, clerk, [limits.record], { task })).rejects.toThrow(denied);
  await expect(asks(wallet, clerk, [limits.record], { task, forged: { address: thief } })).rejects.toThrow(
    'the address of',
  );
});

test('a call of a batch to address 0 is one of the account to itself', async () => {
  const toThief = {
    field_source: 'ethereum_transaction',
    field: 'to',
    operator: 'eq',
    value: thief,
  } as const;
  const limits = await policyOf([
    anything,
    { name: 'no thief', method: '*', action: 'DENY', conditions: [toThief] },
  ]);
  const wallet = await walletUnder({ signers: [limits.pin] });
  const itself = `0x${'0'.repeat(40)}`;
  const attempt = (data: string) => {
    const calls = [{ to: itself, data }];
    const body = { method: 'wallet_sendCalls', caip2: 'eip155:1', params: { calls } };
    const task = signing({ to: wallet.address, data: batchCall(calls) });
    return asks(wallet, clerk, [limits.record], { body, task });
  };
  await expect(attempt(batchTo(friend))).resolves.toHaveProperty('signed_transaction');
  await expect(attempt(batchTo(thief))).rejects.toThrow(denied);
});

describe('what the server builds', () => {
  const vault = `0x${'a7'.repeat(20)}`;
  const place = { appId: 'acme', caip2: 'eip155:1', address: vault };
  const body = { vault_id: vaultIdOf(place, { address: thief, decimals: 6 }), amount: '10' };
  const ofBody = { field_source: 'action_request_body', field: 'amount' };
  const most = (value: string) => ({ ...ofBody, operator: 'lte', value }) as const;
  const rule = (method: string, conditions: Rule['conditions'], action: Rule['action'] = 'ALLOW'): Rule => ({
    ...{ name: 'built', method, action, conditions },
  });
  const attempt = async (rules: readonly Rule[], asked: { path: string; body: object }, call: CallOf) => {
    const limits = await policyOf(rules);
    const wallet = await walletUnder({ signers: [limits.pin] });
    return asks(wallet, clerk, [limits.record], { ...asked, task: signing(call(wallet.address)) });
  };
  type CallOf = (own: string) => object;
  const deposit = { path: 'earn/ethereum/deposit', body };
  const depositCall: CallOf = (own) => ({ to: vault, data: vaultCall('deposit', 10_000_000n, own) });

  test('what the server builds: is judged by what is signed for a deposit, and its approvals', async () => {
    const approval: CallOf = () => ({ to: thief, data: tokenCall('approve', vault, 0n) });
    for (const call of [depositCall, approval]) {
      await expect(attempt([rule('earn_deposit', [most('10')])], deposit, call)).resolves.toBeDefined();
      await expect(attempt([rule('earn_deposit', [most('9.9')])], deposit, call)).rejects.toThrow(denied);
      await expect(attempt([onlyHello, toFriend('eth_signTransaction')], deposit, call)).rejects.toThrow(
        denied,
      );
    }
    const denying = (value: string) => [anything, rule('earn_deposit', [most(value)], 'DENY')];
    await expect(attempt(denying('10'), deposit, depositCall)).rejects.toThrow(denied);
    await expect(attempt(denying('9.9'), deposit, depositCall)).resolves.toBeDefined();
  });

  test('what the server builds: is judged by what a swap spends, also where that is what the server says', async () => {
    const usdc = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48';
    const euro = `0x${'e1'.repeat(20)}`;
    const swap = (amountType: string, sourceToken = usdc) => ({
      path: 'swap',
      body: {
        source: { caip2: 'eip155:1', asset_address: sourceToken },
        destination: { asset_address: euro },
        ...{ base_amount: '10000000', amount_type: amountType },
      },
    });
    const ends = (own: string) => [[usdc, euro], own, 2_000_000_000n];
    const sells: CallOf = (own) => ({
      to: router,
      data: routerCall('swapExactTokensForTokens', 10_000_000n, 1n, ...ends(own)),
    });
    const buys: CallOf = (own) => ({
      to: router,
      data: routerCall('swapTokensForExactTokens', 10_000_000n, 7_000_000n, ...ends(own)),
    });
    const under = (value: string) => [rule('*', [most(value)])];
    await expect(attempt(under('10'), swap('exact_input'), sells)).resolves.toBeDefined();
    await expect(attempt(under('9'), swap('exact_input'), sells)).rejects.toThrow(denied);
    await expect(attempt(under('7'), swap('exact_output'), buys)).resolves.toBeDefined();
    await expect(attempt(under('6.9'), swap('exact_output'), buys)).rejects.toThrow(denied);
    // An approval of nothing, and tokens whose decimals only the chain knows, say nothing of the amount.
    const clears: CallOf = () => ({ to: usdc, data: tokenCall('approve', router, 0n) });
    await expect(attempt(under('6.9'), swap('exact_output'), clears)).resolves.toBeDefined();
    const path = [`0x${'a2'.repeat(20)}`, euro];
    const pays: CallOf = (own) => ({
      ...{ to: router, value: `0x${(7n * 10n ** 18n).toString(16)}` },
      data: routerCall('swapETHForExactTokens', 10_000_000n, path, own, 2_000_000_000n),
    });
    await expect(attempt(under('7'), swap('exact_output', 'native'), pays)).resolves.toBeDefined();
    await expect(attempt(under('6.9'), swap('exact_output', 'native'), pays)).rejects.toThrow(denied);
    const least = [rule('*', [{ ...ofBody, operator: 'gte', value: '10' }])];
    await expect(attempt(least, swap('exact_input'), clears)).resolves.toBeDefined();
    // Of several calls, the one that counts allows or spends the most.
    for (const [allowed, most] of [
      [9_000_000n, '9'],
      [5_000_000n, '7'],
    ] as const) {
      const batch: CallOf = (own) => ({
        to: own,
        data: batchCall([{ to: usdc, data: tokenCall('approve', router, allowed) }, buys(own)] as never),
      });
      await expect(attempt(under(most), swap('exact_output'), batch)).resolves.toBeDefined();
      await expect(attempt(under(`${Number(most) - 0.1}`), swap('exact_output'), batch)).rejects.toThrow(
        denied,
      );
    }
    const allows =
      (amount: bigint): CallOf =>
      () => ({ to: euro, data: tokenCall('approve', router, amount) });
    const unnamed = {
      ...swap('exact_input', euro),
      body: { ...swap('exact_input', euro).body, destination: { asset_address: usdc } },
    };
    await expect(attempt(under('1'), unnamed, allows(10_000_000n))).resolves.toBeDefined();
    await expect(attempt([onlyHello], unnamed, allows(10_000_000n))).rejects.toThrow(denied);
  });

  test('of a token without a name, everything but the amount is judged', async () => {
    const [unknownToken, friendly, evil] = [0xe1, 0xf1, 0xf2].map(
      (byte) => `0x${byte.toString(16).repeat(20)}`,
    );
    const asks = (to: string) => ({
      path: 'swap',
      body: {
        source: { caip2: 'eip155:1', asset_address: unknownToken },
        destination: { asset_address: 'native', destination_address: to },
        base_amount: '1000000',
      },
    });
    const sells =
      (to: string): CallOf =>
      () => ({
        to: router,
        data: routerCall('swapExactTokensForETH', 1_000_000n, 1n, [unknownToken, evil], to, 2_000_000_000n),
      });
    const allowsNothing: CallOf = () => ({ to: unknownToken!, data: tokenCall('approve', router, 0n) });
    const of = (field: string, value: string, operator: 'eq' | 'lte' = 'eq') =>
      ({ field_source: 'action_request_body', field, operator, value }) as const;
    const toFriend = [rule('*', [of('destination.address', friendly!)])];
    const notToEvil = [rule('*', []), rule('*', [of('destination.address', evil!)], 'DENY')];
    for (const rules of [toFriend, notToEvil]) {
      for (const task of [sells(evil!), allowsNothing])
        await expect(attempt(rules, asks(evil!), task)).rejects.toThrow(denied);
      for (const task of [sells(friendly!), allowsNothing])
        await expect(attempt(rules, asks(friendly!), task)).resolves.toBeDefined();
    }
    // Amounts in base units are known, those in its units are not.
    const most = (field: string, value: string) => [rule('*', [of(field, value, 'lte')])];
    await expect(attempt(most('raw_amount', '999999'), asks(friendly!), sells(friendly!))).rejects.toThrow(
      denied,
    );
    await expect(
      attempt(most('source.amount', '0.000001'), asks(friendly!), sells(friendly!)),
    ).resolves.toBeDefined();
  });

  test('what the server builds: is judged by the time', async () => {
    const soon = { field_source: 'system', field: 'current_unix_timestamp', operator: 'lt' } as const;
    const until = (seconds: number) => [
      rule('earn_deposit', [{ ...soon, value: String(nowMs / 1000 + seconds) }]),
    ];
    await expect(attempt(until(0), deposit, depositCall)).rejects.toThrow(denied);
    await expect(attempt(until(1), deposit, depositCall)).resolves.toBeDefined();
  });

  test('what the server builds: is judged by the amount of a payout', async () => {
    const usdc = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48';
    const payout = {
      path: 'payout/fiat',
      body: {
        source: { asset: 'usdc', chain: 'ethereum', amount: '10' },
        destination: { fiat_account_id: 'account' },
      },
    };
    const pays: CallOf = () => ({ to: usdc, data: tokenCall('transfer', thief, 10_000_000n) });
    await expect(attempt([rule('*', [most('10')])], payout, pays)).resolves.toBeDefined();
    await expect(attempt([rule('*', [most('9.9')])], payout, pays)).rejects.toThrow(denied);
  });

  test('what the server builds: is judged by the fee of the app from a payout, which is 0 without one', async () => {
    const usdc = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48';
    const payout = (fee: object) => ({
      path: 'payout/fiat',
      body: {
        source: { asset: 'usdc', chain: 'ethereum', amount: '10' },
        destination: { fiat_account_id: 'account' },
        ...fee,
      },
    });
    const pays: CallOf = () => ({ to: usdc, data: tokenCall('transfer', thief, 10_000_000n) });
    const ofFee = { field_source: 'action_request_body', field: 'developer_fee_percent' } as const;
    const upTo = [rule('*', [{ ...ofFee, operator: 'lte', value: '1.5' }])];
    for (const fee of [{}, { developer_fee_percent: '1.50' }]) {
      await expect(attempt(upTo, payout(fee), pays)).resolves.toBeDefined();
    }
    const dear = payout({ developer_fee_percent: '1.51' });
    await expect(attempt(upTo, dear, pays)).rejects.toThrow(denied);
  });
});

test('a body with fields that no server accepts is refused: policies would judge them', async () => {
  const usdc = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48';
  const [euro, vault] = [`0x${'e1'.repeat(20)}`, `0x${'a7'.repeat(20)}`];
  const place = { appId: 'acme', caip2: 'eip155:1', address: vault };
  const id = vaultIdOf(place, { address: usdc, decimals: 6 });
  const ends = (own: string) => [[euro, usdc], own, 2_000_000_000n];
  const sale = (own: string) => routerCall('swapExactTokensForTokens', 5n, 1n, ...ends(own));
  const swap = {
    source: { caip2: 'eip155:1', asset_address: euro },
    destination: { asset_address: usdc },
    base_amount: '5',
  };
  const payout = {
    source: { asset: 'eth', chain: 'ethereum', amount: '0.000000000000000001' },
    destination: { fiat_account_id: 'account' },
  };
  const transfer = { ...payout, destination: { address: thief } };
  const pays = () => ({ to: thief, value: '0x1' });
  const builds: Record<string, readonly [object, (own: string) => object]> = {
    swap: [swap, (own) => ({ to: router, data: sale(own) })],
    'payout/fiat': [payout, pays],
    transfer: [transfer, pays],
    'earn/ethereum/deposit': [
      { vault_id: id, raw_amount: '5' },
      (own) => ({ to: vault, data: vaultCall('deposit', 5n, own) }),
    ],
    'earn/ethereum/withdraw': [
      { vault_id: id, raw_amount: '5' },
      (own) => ({ to: vault, data: vaultCall('withdraw', 5n, own, own) }),
    ],
    'earn/ethereum/fees/collect': [
      { vault_id: id },
      (own) => ({ to: vault, data: vaultCall('withdrawFees', own, 5n) }),
    ],
    'earn/ethereum/incentive/claim': [
      { chain: 'base' },
      (own) => ({ to: distributor, chain_id: 8453, data: claimCall([own], [usdc], [7n], [[]]) }),
    ],
  };
  const limits = await policyOf([anything]);
  const wallet = await walletUnder({ signers: [limits.pin] });
  const attempt = (path: string, change: (body: object) => object) => {
    const [body, call] = builds[path]!;
    const task = signing(call(wallet.address));
    return asks(wallet, clerk, [limits.record], { task, path, body: change(body) });
  };
  const known = { nonce: 'n'.repeat(24), reference_id: 'mine' };
  for (const path of Object.keys(builds)) {
    await expect(
      attempt(path, (body) => ({ ...body, ...known })),
      path,
    ).resolves.toBeDefined();
    const forged = attempt(path, (body) => ({ ...body, judged: '1' }));
    await expect(forged, path).rejects.toThrow('asks for something else');
  }
  type Sides = { readonly source: object; readonly destination: object };
  for (const [path, side, fields] of [
    ['swap', 'source', { asset: 'usdc' }],
    ['swap', 'source', { chain: 'base' }],
    ['swap', 'destination', { asset: 'eth' }],
    ['payout/fiat', 'source', { asset_address: euro }],
    ['payout/fiat', 'destination', { address: friend }],
    ['transfer', 'source', { caip2: 'eip155:1' }],
    ['transfer', 'destination', { asset_address: euro }],
  ] as const) {
    const change = (body: object) => ({ ...body, [side]: { ...(body as Sides)[side], ...fields } });
    const what = JSON.stringify([path, fields]);
    await expect(attempt(path, change), what).rejects.toThrow('asks for something else');
  }
});

test('a time that a policy allows ends a minute later at most, whatever the server says', async () => {
  const soon = { field_source: 'system', field: 'current_unix_timestamp', operator: 'lt' } as const;
  const attempt = async (condition: object, judgedAtMs: unknown) => {
    const rules = [{ ...onlyHello, conditions: [condition] }] as readonly Rule[];
    const limits = await policyOf(rules);
    const wallet = await walletUnder({ signers: [limits.pin] });
    return asks(wallet, clerk, [limits.record], { task: hello, forged: { judgedAtMs } });
  };
  const until = (seconds: number) => ({ ...soon, value: String(nowMs / 1000 + seconds) });
  const from = { ...soon, operator: 'gt', value: String(nowMs / 1000) } as const;
  await expect(attempt(until(0), undefined)).rejects.toThrow(denied);
  await expect(attempt(until(0), nowMs - 1_000)).resolves.toBeDefined();
  await expect(attempt(until(-59), nowMs - 60_000)).resolves.toBeDefined();
  await expect(attempt(until(-60), nowMs - 600_000)).rejects.toThrow(denied);
  // Not before it begins.
  for (const said of [nowMs + 60_000, 1e300, 'later', [9e15]]) {
    await expect(attempt(from, said), String(said)).rejects.toThrow(denied);
  }
});

test('a transfer is judged by its body, which is what is signed', async () => {
  const recipient = { field_source: 'action_request_body', field: 'destination.address', operator: 'eq' };
  const ofAmount = { field_source: 'action_request_body', field: 'source.amount', operator: 'lte' };
  const transfers = (conditions: readonly object[], action: Rule['action'] = 'ALLOW'): Rule => ({
    ...{ name: 'transfers', method: 'transfer', action, conditions: conditions as Rule['conditions'] },
  });
  const attempt = async (rules: readonly Rule[], amount = '1', to = friend) => {
    const limits = await policyOf(rules);
    const wallet = await walletUnder({ signers: [limits.pin] });
    const body = { source: { asset: 'eth', chain: 'ethereum' }, amount, destination: { address: to } };
    const task = signing({ to, value: `0x${(BigInt(amount) * 10n ** 18n).toString(16)}` });
    return asks(wallet, clerk, [limits.record], { task, path: 'transfer', body });
  };
  const few = transfers([{ ...ofAmount, value: '2' }]);
  await expect(attempt([few], '2')).resolves.toHaveProperty('signed_transaction');
  await expect(attempt([few], '3')).rejects.toThrow(denied);
  const toFriendOnly = transfers([{ ...recipient, value: friend }]);
  await expect(attempt([toFriendOnly])).resolves.toBeDefined();
  await expect(attempt([toFriendOnly], '1', thief)).rejects.toThrow(denied);
  const notToThief = transfers([{ ...recipient, value: thief }], 'DENY');
  await expect(attempt([anything, notToThief])).resolves.toBeDefined();
  await expect(attempt([anything, notToThief], '1', thief)).rejects.toThrow(denied);
});

test('a transfer whose body names its asset twice is refused: policies would judge the other one', async () => {
  const oneToken: Rule = {
    ...{ name: 'transfers', method: 'transfer', action: 'ALLOW' },
    conditions: [
      { field_source: 'action_request_body', field: 'source.asset_address', operator: 'eq', value: friend },
    ],
  };
  const limits = await policyOf([oneToken]);
  const wallet = await walletUnder({ signers: [limits.pin] });
  const attempt = (source: object, task: object) => {
    const body = { source: { chain: 'ethereum', amount: '1', ...source }, destination: { address: friend } };
    return asks(wallet, clerk, [limits.record], { task, path: 'transfer', body });
  };
  const ether = signing({ to: friend, value: `0x${(10n ** 18n).toString(16)}` });
  const data = encodeFunctionData({
    ...{ abi: parseAbi(['function transfer(address, uint256)']), functionName: 'transfer' },
    args: [friend as `0x${string}`, 1_000_000n],
  });
  const usdc = signing({ to: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', data });
  await expect(attempt({ asset_address: friend }, signing({ to: friend, data }))).resolves.toBeDefined();
  await expect(attempt({ asset: 'eth' }, ether)).rejects.toThrow(denied);
  for (const [asset, task] of [
    ['eth', ether],
    ['usdc', usdc],
  ] as const) {
    const named = { asset, asset_address: friend };
    await expect(attempt(named, task), asset).rejects.toThrow('asks for something else');
  }
});

test('a method of another chain is refused, whatever the policy allows', async () => {
  const limits = await policyOf([anything]);
  const wallet = await walletUnder({ signers: [limits.pin] });
  const task = { method: 'tron_signTransaction', params: { raw_data: {} } };
  await expect(asks(wallet, clerk, [limits.record], { task })).rejects.toThrow('ethereum');
});

test('an export is judged like other uses', async () => {
  const limits = await policyOf([onlyHello]);
  const free = await policyOf([{ ...anything, method: 'exportPrivateKey' }], admins, 'free');
  const recipient = Buffer.from(owner.publicKey, 'base64').subarray(-65);
  const body = { encryption_type: 'HPKE', recipient_public_key: owner.publicKey };
  for (const [policy, isAllowed] of [
    [limits, false],
    [free, true],
  ] as const) {
    const wallet = await walletUnder({ wallet: policy.pin });
    const evidence = signedBy([owner], { path: '/v1/wallets/wallet/export', body });
    const use = { ...useOf(wallet, evidence), policies: [policy.record] };
    const json = { key: 'test', binding: wallet.binding, form: 'private-key', use };
    const exported = server.call('exportWalletKey', [...wallet.parts, recipient], json);
    if (isAllowed) await expect(exported).resolves.toBeDefined();
    else await expect(exported).rejects.toThrow(denied);
  }
});

test('on Solana, what may be a transaction is no message', async () => {
  const limits = await policyOf([{ ...anything, method: 'signMessage' }], admins, 'solana');
  const content = { ...JSON.parse(limits.record.content), chainType: 'solana' } as PolicyContent;
  const { parts, json } = await server.call('sealPolicy', [], { binding: bindingOf('solana'), content });
  const { name, content: text } = json as { name: string; content: string };
  const wallet = await server.walletOf({
    ...{ owner: owners, signers: [clerks], chainType: 'solana' },
    policies: pinned({ signers: [{ id: 'solana', seal: name }] }),
  });
  const attempt = (task: object, path = 'rpc') =>
    asks(wallet, clerk, [recordOf('solana', text, parts)], { task, path });
  const message = (bytes: Uint8Array) => ({
    method: 'signMessage',
    params: { message: Buffer.from(bytes).toString('base64'), encoding: 'base64' },
  });
  await expect(attempt(message(Buffer.from('hello')))).resolves.toHaveProperty('signature');
  // Bytes that may be a transaction are not a message, which the policy allows.
  const transaction = new Uint8Array([0x81, 1, 0, 0, ...randomBytes(96)]);
  await expect(attempt(message(transaction))).rejects.toThrow(denied);
  const raw = { method: 'raw_sign', params: { hash: `0x${'11'.repeat(32)}` } };
  await expect(attempt(raw, 'raw_sign')).rejects.toThrow(denied);
});

function newAddress(): string {
  return privateKeyToAccount(`0x${randomBytes(32).toString('hex')}`).address.toLowerCase();
}
