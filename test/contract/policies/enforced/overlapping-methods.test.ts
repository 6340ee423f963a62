import { createHash } from 'node:crypto';
import {
  Deserializer,
  generateSigningMessageForTransaction,
  RawTransaction,
  SimpleTransaction,
} from '@aptos-labs/ts-sdk';
import { beginCell } from '@ton/core';
import { zksync } from 'viem/chains';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { triedXrplTypes } from '../../../../src/domain/requests/policy-analysis/lint-xrpl.ts';
import { bytesTo0xHex } from '../../../../src/engine/crypto/encoding.ts';
import { hashTypedData, type TypedData } from '../../../../src/engine/signing/ethereum/typed-data.ts';
import { encodeType } from '../../../../src/engine/signing/ethereum/typed-data-types.ts';
import type { CreatePolicyRequest, WalletChainType } from '../../../../src/generated/schemas.ts';
import { call } from '../../../support/call.ts';
import { fund } from '../../../support/fund.ts';
import { configureApp } from '../../../support/other-app.ts';
import { analysisResponse, analyzePolicies } from '../../../support/policy-analysis.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
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

// What one method denies can be had by another one, or in another way by the same.

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
type Tried = Gap['passes'];

/** The gaps, by kind: the methods that pass. */
function summary(gaps: readonly Gap[]): Record<string, string> {
  const kinds = Map.groupBy(gaps, ({ kind }) => kind);
  return Object.fromEntries(
    [...kinds].map(([kind, some]) => [kind, some.map(({ passes }) => passes.method).join(' ')]),
  );
}

describe('lint', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const usdc = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48';
  const inputs = [
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
  ];
  const abi = [{ type: 'function', name: 'transfer', stateMutability: 'nonpayable', inputs, outputs: [] }];
  const calldata = (field: string, operator: string, value: string) =>
    ({ ...when('ethereum_calldata', field, operator, value), abi }) as Rule['conditions'][number];
  const toToken = when('ethereum_transaction', 'to', 'eq', usdc);
  const evil = '0x00000000000000000000000000000000000e0e11';
  const tronFriend = 'TLsV52sRDL79HXGGm9yzwKibb6BeruhUzy';
  const solanaFriend = 'So11111111111111111111111111111111111111112';
  const xrplFriend = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe';
  const xrpl = (field: string, operator: string, value: string) =>
    when('xrpl_transaction', field, operator, value);

  /** What sending needs. */
  const natives: { readonly [type in WalletChainType]?: Parameters<typeof fund>[2] } = {
    ethereum: { chain: 'ethereum', asset: 'eth', rawAmount: 10n ** 18n },
    solana: { chain: 'solana', asset: 'sol', rawAmount: 10n ** 10n },
    tron: { chain: 'tron', asset: 'trx', rawAmount: 10n ** 10n },
  };

  /** Two payments, a key that may trade, and a trade. */
  const onHyperliquid = Array(4).fill('eth_signTypedData_v4').join(' ');

  type Case = readonly [string, WalletChainType, readonly Rule[], Record<string, string>];
  const cases: readonly Case[] = [
    [
      'a DENY beside an ALLOW for every method',
      'ethereum',
      noValue,
      {
        key_export: 'exportPrivateKey exportSeedPhrase',
        hash_signing: 'signRawMessageBytes secp256k1_sign',
        raw_signing: 'signRawMessageBytes',
        // A transaction of a Safe, the account itself, and a transaction of ZKsync.
        sibling_call: 'eth_signTypedData_v4 eth_sign7702Authorization eth_signTypedData_v4',
        token_transfer: `eth_signTransaction ${onHyperliquid}`,
        other_method: 'eth_sendTransaction wallet_sendCalls eth_signUserOperation transfer',
      },
    ],
    [
      'user operations to one receiver beside short messages',
      'ethereum',
      operationsToFriend,
      {
        user_operation_hash: 'personal_sign eth_signTypedData_v4',
        sibling_call: 'eth_signTypedData_v4 eth_signTypedData_v4',
        token_transfer: onHyperliquid,
      },
    ],
    [
      'a limit for payments alone',
      'ethereum',
      [allow('eth_signTransaction', when('ethereum_transaction', 'value', 'lt', '9'))],
      { token_transfer: 'eth_signTransaction' },
    ],
    [
      'a DENY on a function of a token',
      'ethereum',
      [
        allow('eth_signTransaction', toToken),
        deny('eth_signTransaction', calldata('transfer.to', 'eq', evil)),
      ],
      // approve, increaseAllowance, transferFrom, multicall
      { sibling_call: Array(4).fill('eth_signTransaction').join(' ') },
    ],
    [
      'a DENY on transfers of a token beside typed data',
      'ethereum',
      [deny('eth_signTransaction', calldata('transfer.to', 'eq', evil)), allow('eth_signTypedData_v4')],
      {
        // Of ERC-2612, DAI, ERC-3009 (2), Permit2 (4), an order, a tree of orders, a root, and a transaction of a Safe and
        // of ZKsync.
        sibling_call: Array(13).fill('eth_signTypedData_v4').join(' '),
        token_transfer: onHyperliquid,
        user_operation_hash: 'eth_signTypedData_v4',
      },
    ],
    [
      'a DENY on a message of typed data',
      'ethereum',
      [
        allow('eth_signTypedData_v4'),
        deny('eth_signTypedData_v4', {
          ...when('ethereum_typed_data_message', 'spender', 'eq', evil),
          typed_data: { types: { Grant: [{ name: 'spender', type: 'address' }] }, primary_type: 'Grant' },
        } as Rule['conditions'][number]),
      ],
      // By which a smart account of the wallet verifies the hash of the message.
      { hash_signing: 'eth_signTypedData_v4', user_operation_hash: 'eth_signTypedData_v4' },
    ],
    [
      'a DENY on transfers of a token beside typed data of one contract',
      'ethereum',
      [
        deny('eth_signTransaction', calldata('transfer.to', 'eq', evil)),
        allow('eth_signTypedData_v4', when('ethereum_typed_data_domain', 'verifyingContract', 'eq', friend)),
      ],
      {},
    ],
    [
      'a DENY on one receiver',
      'ethereum',
      [
        allow('eth_signTransaction'),
        deny('eth_signTransaction', when('ethereum_transaction', 'to', 'eq', evil)),
      ],
      // A contract that passes the payment on.
      { sibling_call: 'eth_signTransaction', token_transfer: 'eth_signTransaction' },
    ],
    [
      'a DENY on messages and authorizations',
      'ethereum',
      [
        allow('*'),
        deny('personal_sign', when('message', 'content', 'contains', 'evil')),
        deny('eth_sign7702Authorization', when('ethereum_7702_authorization', 'contract', 'neq', friend)),
      ],
      {
        key_export: 'exportPrivateKey exportSeedPhrase',
        hash_signing: 'signRawMessageBytes secp256k1_sign',
        raw_signing: 'signRawMessageBytes',
      },
    ],
    [
      'payments and tokens to friends',
      'ethereum',
      [
        allow('eth_signTransaction', when('ethereum_transaction', 'to', 'eq', friend)),
        allow('eth_signTransaction', toToken, calldata('transfer.to', 'eq', friend)),
        allow('personal_sign', when('message', 'content', 'starts_with', 'login')),
      ],
      {},
    ],
    ['everything', 'ethereum', [allow('*')], {}],
    ['every method, one of them by its name', 'ethereum', [allow('*'), allow('personal_sign')], {}],
    [
      'transactions and a named export',
      'ethereum',
      [allow('eth_signTransaction'), allow('exportPrivateKey')],
      {},
    ],
    [
      'a DENY on payments of Solana',
      'solana',
      [
        allow('*'),
        deny(
          'signTransaction',
          when('solana_system_program_instruction', 'Transfer.lamports', 'gt', '2000000'),
        ),
      ],
      {
        key_export: 'exportPrivateKey exportSeedPhrase',
        // CreateAccount, Assign, CreateAccountWithSeed, WithdrawNonceAccount, AuthorizeNonceAccount, TransferWithSeed
        sibling_call: Array(6).fill('signTransaction').join(' '),
        token_transfer: 'signTransaction',
        other_method: 'signAndSendTransaction transfer',
      },
    ],
    [
      'a DENY on token transfers of Solana',
      'solana',
      [
        allow('signTransaction'),
        deny('signTransaction', when('solana_token_program_instruction', 'Transfer.amount', 'gt', '1000')),
      ],
      // Approve, ApproveChecked, CloseAccount, SetAuthority
      { sibling_call: Array(4).fill('signTransaction').join(' ') },
    ],
    [
      'payments of Solana for some time',
      'solana',
      [allow('signTransaction', when('system', 'current_unix_timestamp', 'lt', '4000000000'))],
      { lasting_transaction: 'signTransaction' },
    ],
    [
      'payments of Solana for some time, without durable nonces',
      'solana',
      [
        allow('signTransaction', when('system', 'current_unix_timestamp', 'lt', '4000000000')),
        deny(
          'signTransaction',
          when('solana_system_program_instruction', 'instructionName', 'eq', 'AdvanceNonceAccount'),
        ),
      ],
      {},
    ],
    [
      'payments to a friend on Solana',
      'solana',
      [
        allow(
          'signTransaction',
          when('solana_system_program_instruction', 'Transfer.to', 'eq', solanaFriend),
        ),
      ],
      {},
    ],
    [
      'a DENY on payments of Tron',
      'tron',
      [
        allow('*'),
        deny('tron_signTransaction', when('tron_transaction', 'TransferContract.amount', 'gt', '1000')),
      ],
      {
        key_export: 'exportPrivateKey',
        hash_signing: 'signTransactionBytes',
        // AccountPermissionUpdateContract
        sibling_call: 'signTransactionBytes',
        token_transfer: 'tron_signTransaction',
        other_method: 'tron_sendTransaction signTransactionBytes transfer',
      },
    ],
    [
      'a DENY on a function of a token of Tron',
      'tron',
      [
        allow('tron_signTransaction'),
        deny('tron_signTransaction', {
          ...calldata('transfer.value', 'gt', '5'),
          field_source: 'tron_trigger_smart_contract_data',
        } as Rule['conditions'][number]),
      ],
      { sibling_call: Array(4).fill('tron_signTransaction').join(' ') },
    ],
    [
      'payments to a friend on Tron',
      'tron',
      [
        allow(
          'tron_signTransaction',
          when('tron_transaction', 'TransferContract.to_address', 'eq', tronFriend),
        ),
      ],
      {},
    ],
    [
      'a DENY on payments of the XRP Ledger',
      'xrpl',
      [
        allow('xrpl_signTransaction'),
        deny('xrpl_signTransaction', xrpl('Payment.Amount.drops', 'gt', '1000')),
      ],
      {
        // Every other type that spends or gives the account away, and a payment that spends by SendMax.
        sibling_call: [...triedXrplTypes, 'Payment'].map(() => 'xrpl_signTransaction').join(' '),
        token_transfer: 'xrpl_signTransaction',
      },
    ],
    [
      'payments to a friend on the XRP Ledger',
      'xrpl',
      [allow('xrpl_signTransaction', xrpl('Payment.Destination', 'eq', xrplFriend))],
      {},
    ],
    [
      'a DENY on transfers of Sui',
      'sui',
      [
        allow('*'),
        deny('signTransactionBytes', when('sui_transfer_objects_command', 'amount', 'gt', '1000')),
      ],
      { key_export: 'exportPrivateKey' },
    ],
    [
      'transfers to a friend on Sui',
      'sui',
      [
        allow(
          'signTransactionBytes',
          when('sui_transfer_objects_command', 'recipient', 'eq', `0x${'ab'.repeat(32)}`),
        ),
      ],
      {},
    ],
    [
      'messages of Cosmos that contain a word',
      'cosmos',
      [allow('signRawMessageBytes', when('message', 'content', 'contains', 'login'))],
      // A transaction in amino JSON is text, and has a memo.
      { raw_signing: 'signRawMessageBytes' },
    ],
    ...(['bitcoin-segwit', 'near', 'cosmos', 'stellar', 'ton'] as const).flatMap((chainType): Case[] => [
      [
        `short messages on ${chainType}`,
        chainType,
        [allow('signRawMessageBytes', when('message', 'byte_length', 'lte', '300'))],
        { raw_signing: 'signRawMessageBytes' },
      ],
      [
        `messages that begin alike on ${chainType}`,
        chainType,
        [allow('signRawMessageBytes', when('message', 'content', 'starts_with', 'login'))],
        {},
      ],
    ]),
    [
      'a DENY on messages of NEAR',
      'near',
      [allow('*'), deny('signRawMessageBytes', when('message', 'byte_length', 'lt', '32'))],
      {
        key_export: 'exportPrivateKey',
        raw_signing: 'signRawMessageBytes',
        other_method: 'near_signTransaction',
      },
    ],
    ...(['aptos', 'movement'] as const).flatMap((chainType): Case[] => [
      [
        `a DENY on messages of ${chainType}, whose transactions are signed as they are`,
        chainType,
        [allow('*'), deny('signRawMessageBytes', when('message', 'byte_length', 'lt', '32'))],
        { key_export: 'exportPrivateKey', other_method: 'aptos_signTransaction' },
      ],
      [
        `a DENY on exports of ${chainType}`,
        chainType,
        [allow('*'), deny('exportPrivateKey')],
        { hash_signing: 'signRawMessageBytes' },
      ],
      [
        `a DENY on raw signatures of ${chainType}`,
        chainType,
        [allow('*'), deny('signRawMessageBytes')],
        { key_export: 'exportPrivateKey', other_method: 'aptos_signTransaction' },
      ],
      [
        `short messages on ${chainType}`,
        chainType,
        [allow('signRawMessageBytes', when('message', 'byte_length', 'lte', '300'))],
        {},
      ],
    ]),
    [
      'a DENY on messages of Starknet',
      'starknet',
      [allow('*'), deny('signRawMessageBytes', when('message', 'content', 'contains', 'evil'))],
      { key_export: 'exportPrivateKey' },
    ],
    ['a DENY on exports of Spark', 'spark', [allow('*'), deny('exportPrivateKey')], {}],
  ];

  test('tries a transaction of Aptos as its library signs it', async () => {
    const rules = [allow('*'), deny('signRawMessageBytes')];
    const { gaps } = await analyzePolicies(sandbox, 'lintPolicy', { policy: draft(rules, 'aptos') });
    const { denied, passes } = gaps.find(({ kind }) => kind === 'other_method')!;
    const { transaction } = (passes.request as { params: { transaction: string } }).params;
    const raw = RawTransaction.deserialize(new Deserializer(Buffer.from(transaction.slice(2), 'hex')));
    expect(raw.bcsToHex().toString()).toBe(transaction);
    const message = generateSigningMessageForTransaction(new SimpleTransaction(raw));
    expect(denied!.request).toEqual({ params: { hash: `0x${Buffer.from(message).toString('hex')}` } });
  });

  test('tries the bytes of which the hash of a cell of TON is the SHA-256', async () => {
    const rules = [allow('signRawMessageBytes', when('message', 'byte_length', 'lte', '64'))];
    const { gaps } = await analyzePolicies(sandbox, 'lintPolicy', { policy: draft(rules, 'ton') });
    const { bytes } = (gaps[0]!.passes.request as { params: { bytes: string } }).params;
    // Depth and hash of the cell that it refers to do not say what that is.
    const body = beginCell()
      .storeUint(0x29a9a317, 32)
      .storeUint(0xffffffff, 32)
      .storeUint(1, 32)
      .storeUint(3, 16);
    const message = beginCell().storeUint(7, 32).endCell();
    const cell = body.storeRef(message).endCell();
    const tried = Buffer.from(bytes.slice(2), 'hex');
    const preimage = Buffer.concat([tried.subarray(0, -32), message.hash()]);
    expect(createHash('sha256').update(preimage).digest()).toEqual(cell.hash());
  });

  test('tries typed data as ZKsync and Hyperliquid verify it', async () => {
    const tried = new Map(
      (await lint(sandbox, noValue)).flatMap(({ passes }) => {
        const { params = {} } = passes.request as { params?: { typed_data?: TypedData } };
        return params.typed_data === undefined ? [] : [[params.typed_data.primary_type, params.typed_data]];
      }),
    );
    const account = `0x${'11'.repeat(20)}` as const;
    const viems = zksync.custom.getEip712Domain({
      ...{ type: 'eip712', chainId: 324, nonce: 0, from: account, to: account, value: 5n },
      ...{ data: '0x', gas: 1n, maxFeePerGas: 1n, paymaster: account, paymasterInput: '0x' },
    });
    expect(tried.get('Transaction')).toMatchObject({ domain: viems.domain, types: viems.types });
    // The encodeType of each action, from signing.py of Hyperliquid's SDK.
    const actions = [
      'HyperliquidTransaction:UsdSend(string hyperliquidChain,string destination,string amount,uint64 time)',
      'HyperliquidTransaction:Withdraw(string hyperliquidChain,string destination,string amount,uint64 time)',
      'HyperliquidTransaction:ApproveAgent(string hyperliquidChain,address agentAddress,string agentName,uint64 nonce)',
      'Agent(string source,bytes32 connectionId)',
    ];
    for (const action of actions) {
      const { types = {} } = tried.get(action.split('(')[0]!) ?? {};
      expect(
        Object.entries(types).map(([name, members]) => encodeType(new Map([[name, members]]), name)),
      ).toEqual([action]);
    }
  });

  test.each(cases)('lint of %s', async (_name, chainType, rules, expected) => {
    const wallet = await makeWallet(sandbox, chainType, { rules });
    const funds = natives[chainType];
    if (funds !== undefined) await fund(sandbox, wallet.address, funds);
    const [policy_id] = wallet.policy_ids;
    const asked = { policy_id, wallet_id: wallet.id };
    const { gaps } = await analyzePolicies(sandbox, 'lintPolicy', asked);
    expect(summary(gaps)).toEqual(expected);
    const attempt = async ({ operation, request }: Tried): Promise<string> => {
      const result = await outcome(sandbox, operation as 'walletRpc', { wallet, body: request });
      if (!/transaction_(broadcast|execution)_failure/.test(result)) return result;
      // A chain that refuses it, for example for its blockhash, does so before the policy is evaluated.
      const explained = { wallet_id: wallet.id, operation, request };
      const { decision } = await analyzePolicies(sandbox, 'explainPolicy', explained);
      return decision === 'allowed' ? allowed : denied;
    };
    const setRules = (changed: readonly object[]) =>
      call(sandbox, 'updatePolicy', { path: { policy_id: policy_id! }, body: { rules: changed as Rule[] } });
    for (const { denied: refused, passes, remedy } of gaps) {
      if (refused !== null) expect(await attempt(refused)).toBe(denied);
      expect(await attempt(passes)).toBe(allowed);
      if (remedy === null) continue;
      const { setting, rule } = remedy as { setting?: string; rule?: Rule };
      if (setting !== undefined) await configureApp(sandbox, { [setting]: true });
      if (rule !== undefined) await setRules([...rules, rule]);
      expect(await attempt(passes)).toBe(denied);
      if (setting !== undefined) await configureApp(sandbox, { [setting]: false });
      if (rule !== undefined) await setRules(rules);
    }
  });

  test('lint: reports the same signatures as the denied requests have', async () => {
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
    expect(Object.keys(summary(stored.gaps))).toEqual(['sibling_call', 'token_transfer', 'other_method']);
    expect(stored.gaps[0]).toMatchObject({ rule_name: 'allow *', denied: { method: 'eth_signTransaction' } });

    const large = deny(
      'signTransaction',
      when('solana_system_program_instruction', 'Transfer.lamports', 'gt', '1'),
    );
    const policy = draft([allow('*'), large], 'solana');
    const onSolana = await analyzePolicies(sandbox, 'lintPolicy', { policy });
    expect(summary(onSolana.gaps).key_export).toBe('exportPrivateKey exportSeedPhrase');
    const { id: wallet_id } = await makeWallet(sandbox, 'ethereum');
    const elsewhere = await analysisResponse(sandbox, 'lintPolicy', { policy, wallet_id });
    expect(elsewhere).toMatchObject({ status: 400, body: { code: 'invalid_data' } });

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

  test('the app setting `strict_methods` is off unless the app sets it', async () => {
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

  test('explanations follow `strict_methods` of the app', async () => {
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
