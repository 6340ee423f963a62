import { describe, expect, test } from 'vitest';
import { bytesTo0xHex } from '../../../src/crypto/encoding.ts';
import type { CreatePolicyRequest, WalletChainType } from '../../../src/generated/schemas.ts';
import { hashTypedData } from '../../../src/signing/ethereum/typed-data.ts';
import { call } from '../../support/call.ts';
import { configureApp } from '../../support/other-app.ts';
import { analysisResponse, analyzePolicies } from '../../support/policy-analysis.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import {
  allow,
  allowed,
  always,
  denied,
  deny,
  makePolicy,
  makeWallet,
  outcome,
  type Rule,
} from './policies.ts';

// Methods overlap: a signature that one method denies can be had by another.

const friend = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const when = (field_source: string, field: string, operator: string, value: string) =>
  ({ field_source, field, operator, value }) as Rule['conditions'][number];
const noValue = [allow('*'), deny('eth_signTransaction', when('ethereum_transaction', 'value', 'gt', '0'))];
const operationsToFriend = [
  allow('personal_sign', when('message', 'byte_length', 'lte', '100')),
  allow('eth_signTypedData_v4'),
  allow('eth_signUserOperation', when('ethereum_transaction', 'to', 'eq', friend)),
];

function draft(rules: readonly Rule[], chain_type: WalletChainType = 'ethereum') {
  return { chain_type, rules: [...rules] } as unknown as CreatePolicyRequest;
}

async function lint(sandbox: TestSandbox, rules: readonly Rule[], more: object = {}) {
  return (await analyzePolicies(sandbox, 'lintPolicy', { policy: draft(rules), ...more })).gaps;
}

type Gap = Awaited<ReturnType<typeof lint>>[number];
const names = (gaps: readonly Gap[]): string[] => gaps.map(({ kind, passes }) => `${kind} ${passes.method}`);

describe('lint', () => {
  test.each([
    [
      'a DENY beside an ALLOW for every method',
      noValue,
      [
        'key_export exportPrivateKey',
        'key_export exportSeedPhrase',
        'hash_signing signRawMessageBytes',
        'hash_signing secp256k1_sign',
        'other_method eth_sendTransaction',
        'other_method wallet_sendCalls',
        'other_method eth_signUserOperation',
        'other_method transfer',
      ],
    ],
    [
      'user operations to one receiver beside short messages',
      operationsToFriend,
      ['user_operation_hash personal_sign', 'user_operation_hash eth_signTypedData_v4'],
    ],
    [
      'one method with a limit',
      [allow('eth_signTransaction', when('ethereum_transaction', 'value', 'lt', '9'))],
      [],
    ],
    ['everything', [allow('*')], []],
    ['transactions and a named export', [allow('eth_signTransaction'), allow('exportPrivateKey')], []],
  ] as const)('of %s', async (_name, rules, expected) => {
    await using sandbox = await startSandbox();
    const gaps = await lint(sandbox, rules);
    expect(names(gaps)).toEqual(expected);
    const wallet = await makeWallet(sandbox, 'ethereum', { rules });
    for (const { denied: refused, passes } of gaps) {
      for (const [tried, decision] of [
        [refused, 'denied'],
        [passes, 'allowed'],
      ] as const) {
        const { operation, request } = tried!;
        const asked = { wallet_id: wallet.id, operation, request };
        expect((await analyzePolicies(sandbox, 'explainPolicy', asked)).decision).toBe(decision);
        // What needs no chain is executed.
        const isSending = /send|transfer/.test(tried!.method);
        if (isSending) continue;
        const result = await outcome(sandbox, operation as 'walletRpc', { wallet, body: request });
        const isPhrase = tried!.method === 'exportSeedPhrase';
        if (!isPhrase || decision === 'denied')
          expect(result).toBe(decision === 'allowed' ? allowed : denied);
      }
    }
  });

  test('reports the same signatures as the denied requests have', async () => {
    await using sandbox = await startSandbox();
    const [asMessage, asTypedData] = await lint(sandbox, operationsToFriend);
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    const sign = async (request: object) =>
      (
        (await call(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body: request as never }))
          .body as {
          data: { signature: string };
        }
      ).data.signature;
    expect(await sign(asMessage!.passes.request)).toBe(await sign(asMessage!.denied!.request));
    const operation = asTypedData!.denied!.request as { params: { contract: string } };
    const v08 = '0x4337084d9e255ff0702461cf8895ce9e3b5ff108';
    const ofVersion08 = { ...operation, params: { ...operation.params, contract: v08 } };
    expect(await sign(asTypedData!.passes.request)).toBe(await sign(ofVersion08));
    const { typed_data } = (asTypedData!.passes.request as { params: { typed_data: never } }).params;
    expect(bytesTo0xHex(hashTypedData(typed_data))).toHaveLength(66);
  });

  test('of a stored policy, strictly, and on another chain type', async () => {
    await using sandbox = await startSandbox();
    const policy_id = await makePolicy(sandbox, 'ethereum', noValue);
    const stored = await analyzePolicies(sandbox, 'lintPolicy', { policy_id, strict_methods: true });
    expect(stored).toMatchObject({ app_id: sandbox.appId, policy_id, strict_methods: true });
    expect(new Set(stored.gaps.map(({ kind }) => kind))).toEqual(new Set(['other_method']));
    expect(stored.gaps[0]).toMatchObject({ rule_name: 'allow *', denied: { method: 'eth_signTransaction' } });

    const large = deny(
      'signTransaction',
      when('solana_system_program_instruction', 'Transfer.lamports', 'gt', '1'),
    );
    const policy = draft([allow('*'), large], 'solana');
    const onSolana = await analyzePolicies(sandbox, 'lintPolicy', { policy });
    expect(names(onSolana.gaps)).toContain('key_export exportPrivateKey');

    const none = await analysisResponse(sandbox, 'lintPolicy', {});
    expect(none).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
  });
});

describe('the app setting `strict_methods`', () => {
  const hash = `0x${'11'.repeat(32)}`;
  const attempts = [
    ['rawSignWallet', { params: { hash } }],
    ['walletRpc', { method: 'secp256k1_sign', params: { hash } }],
    ['walletRpc', { method: 'personal_sign', params: { message: hash, encoding: 'hex' } }],
  ] as const;

  test('is off unless the app sets it', async () => {
    await using sandbox = await startSandbox();
    const wallet = await makeWallet(sandbox, 'ethereum', { rules: noValue });
    const tried = async () => {
      const results = [];
      for (const [operation, body] of attempts)
        results.push(await outcome(sandbox, operation, { wallet, body }));
      return results;
    };
    expect(await tried()).toEqual([allowed, allowed, allowed]);
    await configureApp(sandbox, { strict_methods: true });
    expect(await tried()).toEqual([denied, denied, denied]);
    // Without a policy there is nothing to be strict about.
    const free = await makeWallet(sandbox, 'ethereum');
    const [operation, body] = attempts[0];
    expect(await outcome(sandbox, operation, { wallet: free, body })).toBe(allowed);
    const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
    expect(await outcome(sandbox, 'walletRpc', { wallet, body: hello })).toBe(allowed);
  });

  test('holds for explanations', async () => {
    await using sandbox = await startSandbox();
    const asked = {
      policy: draft([allow('*', always)]),
      operation: 'rawSignWallet',
      request: { params: { hash } },
    };
    expect((await analyzePolicies(sandbox, 'explainPolicy', asked)).decision).toBe('allowed');
    await configureApp(sandbox, { strict_methods: true });
    expect((await analyzePolicies(sandbox, 'explainPolicy', asked)).decision).toBe('denied');
  });
});
