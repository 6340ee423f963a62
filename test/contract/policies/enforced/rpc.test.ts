import {
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { encodeForSigning } from 'ripple-binary-codec';
import { TronWeb } from 'tronweb';
import { encodeFunctionData, parseAbi } from 'viem';
import { describe, expect, test } from 'vitest';
import { call, refusal } from '../../../support/call.ts';
import { startSandbox } from '../../../support/sandbox.ts';
import { makeRecipient } from '../../wallets/keys/hpke-client.ts';
import {
  allow,
  allowed,
  always,
  denied,
  deny,
  hello,
  makeWallet,
  outcome,
  payment,
  type Rule,
} from './policies.ts';

const shop = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const thief = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';
const when = (field_source: string, field: string, operator: string, value: string | string[]) =>
  ({ field_source, field, operator, value }) as Rule['conditions'][number];

describe('ethereum', () => {
  test('a denial is reported, in a sandbox with the reason', async () => {
    await using sandbox = await startSandbox();
    const wallet = await makeWallet(sandbox, 'ethereum', {
      rules: [allow('eth_signTransaction', when('ethereum_transaction', 'to', 'eq', shop))],
    });
    const body = payment({ to: thief, value: 1 });
    const { status, body: recorded } = await refusal(sandbox, 'walletRpc', {
      path: { wallet_id: wallet.id },
      body,
    });
    expect({ status, ...recorded }).toMatchObject({
      status: 400,
      error: 'RPC request denied due to policy violation.',
      code: 'policy_violation',
      data: { decision: { allowed: false, units: [{ outcome: 'no_rule_matched' }] } },
    });
    expect(await outcome(sandbox, 'walletRpc', { wallet, body: payment({ to: shop.toLowerCase() }) })).toBe(
      allowed,
    );
  });

  test('each method is evaluated by its own rules', async () => {
    await using sandbox = await startSandbox();
    const erc20 = parseAbi(['function transfer(address to, uint256 amount)']);
    const abi = erc20 as unknown as never;
    const calldata = {
      field_source: 'ethereum_calldata',
      field: 'transfer.amount',
      operator: 'lte',
      value: '5',
      abi,
    } as const;
    const permit = {
      types: { Permit: [{ name: 'value', type: 'uint256' }] },
      primary_type: 'Permit',
    } as const;
    const wallet = await makeWallet(sandbox, 'ethereum', {
      rules: [
        allow('eth_signTransaction', calldata as never),
        allow('personal_sign', when('message', 'content', 'starts_with', 'hel')),
        allow('eth_signTypedData_v4', when('ethereum_typed_data_domain', 'chainId', 'eq', '8453')),
        allow('eth_sign7702Authorization', when('ethereum_7702_authorization', 'contract', 'eq', shop)),
      ],
    });
    const judge = (body: object) => outcome(sandbox, 'walletRpc', { wallet, body });
    const transfer = (amount: bigint) =>
      payment({ to: shop, data: encodeFunctionData({ abi: erc20, args: [shop, amount] }) });
    const typed = (domain: object) => ({
      method: 'eth_signTypedData_v4',
      params: { typed_data: { ...permit, domain, message: { value: '1' } } },
    });
    const authorization = (contract: string) => ({
      method: 'eth_sign7702Authorization',
      params: { contract, chain_id: 1, nonce: 0 },
    });
    expect(await judge(transfer(5n))).toBe(allowed);
    expect(await judge(transfer(6n))).toBe(denied);
    expect(await judge(payment({ to: shop }))).toBe(denied);
    expect(await judge(hello)).toBe(allowed);
    expect(await judge({ ...hello, params: { message: 'Hello', encoding: 'utf-8' } })).toBe(denied);
    expect(await judge(typed({ chainId: 8453 }))).toBe(allowed);
    expect(await judge(typed({ chainId: '0x2105' }))).toBe(allowed);
    expect(await judge(typed({ chainId: 1 }))).toBe(denied);
    expect(await judge(typed({ name: 'no chain' }))).toBe(denied);
    expect(await judge(authorization(shop))).toBe(allowed);
    expect(await judge(authorization(thief))).toBe(denied);
    // No rule can name it; only `*` allows it.
    expect(await judge({ method: 'secp256k1_sign', params: { hash: `0x${'11'.repeat(32)}` } })).toBe(denied);
  });

  test('a domain key that the signature does not bind cannot satisfy a rule', async () => {
    await using sandbox = await startSandbox();
    const wallet = await makeWallet(sandbox, 'ethereum', {
      rules: [allow('eth_signTypedData_v4', when('ethereum_typed_data_domain', 'chainId', 'eq', '8453'))],
    });
    const types = {
      EIP712Domain: [{ name: 'name', type: 'string' }],
      Note: [{ name: 'text', type: 'string' }],
    };
    const typed_data = {
      types,
      primary_type: 'Note',
      domain: { name: 'x', chainId: 8453 },
      message: { text: 'y' },
    };
    const body = { method: 'eth_signTypedData_v4', params: { typed_data } };
    expect(await outcome(sandbox, 'walletRpc', { wallet, body })).toBe('400 invalid_data');
  });

  test('a user operation is evaluated by its calls', async () => {
    await using sandbox = await startSandbox();
    const account = parseAbi([
      'function execute(address dest, uint256 value, bytes func)',
      'function executeBatch(address[] dest, bytes[] func)',
      'function executeBatch(address[] dest, uint256[] value, bytes[] func)',
      'function upgradeTo(address implementation)',
      'struct Call { address target; uint256 value; bytes data; }',
      'function executeBatch(Call[] calls)',
      'function execute(bytes32 mode, bytes executionData)',
    ]);
    const wallet = await makeWallet(sandbox, 'ethereum', {
      rules: [
        allow(
          'eth_signUserOperation',
          when('ethereum_transaction', 'to', 'in', [shop]),
          when('ethereum_transaction', 'value', 'lte', '10'),
          when('ethereum_transaction', 'chain_id', 'eq', '1'),
        ),
      ],
    });
    const judge = (call_data: string, chain_id: number | string = 1) => {
      const gas = { call_gas_limit: '0x1', verification_gas_limit: '0x1', pre_verification_gas: '0x1' };
      const fees = { max_fee_per_gas: '0x1', max_priority_fee_per_gas: '0x1' };
      const user_operation = { sender: thief, nonce: '0x0', call_data, ...gas, ...fees };
      const params = { contract: '0x0000000071727De22E5E9d8BAf0edAc6f37da032', chain_id, user_operation };
      return outcome(sandbox, 'walletRpc', { wallet, body: { method: 'eth_signUserOperation', params } });
    };
    const one = (to: `0x${string}`, value: bigint) =>
      encodeFunctionData({ abi: account, functionName: 'execute', args: [to, value, '0x'] });
    const many = (...to: `0x${string}`[]) =>
      encodeFunctionData({
        abi: account,
        functionName: 'executeBatch',
        args: [to, to.map(() => '0x' as const)],
      });
    const paid = (values: bigint[], ...to: `0x${string}`[]) =>
      encodeFunctionData({
        abi: account,
        functionName: 'executeBatch',
        args: [to, values, to.map(() => '0x' as const)],
      });
    const listed = (...to: `0x${string}`[]) =>
      encodeFunctionData({
        abi: account,
        functionName: 'executeBatch',
        args: [to.map((target) => ({ target, value: 1n, data: '0x' as const }))],
      });
    // ERC-7579: one call in the mode 0, target || value || data; 0xff is a delegate call.
    const executed = (to: `0x${string}`, type: string) =>
      encodeFunctionData({
        abi: account,
        functionName: 'execute',
        args: [`0x${type}${'00'.repeat(31)}`, `${to}${'01'.padStart(64, '0')}`],
      });
    expect(await judge(listed(shop, shop))).toBe(allowed);
    expect(await judge(listed(shop, thief))).toBe(denied);
    expect(await judge(executed(shop, '00'))).toBe(allowed);
    expect(await judge(executed(thief, '00'))).toBe(denied);
    expect(await judge(executed(shop, 'ff'))).toBe(denied);
    expect(await judge(one(shop, 10n))).toBe(allowed);
    expect(await judge(one(shop, 11n))).toBe(denied);
    expect(await judge(one(thief, 1n))).toBe(denied);
    expect(await judge(one(shop, 1n), 8453)).toBe(denied);
    expect(await judge(one(shop, 1n), '0x1')).toBe(allowed);
    expect(await judge(many(shop, shop))).toBe(allowed);
    expect(await judge(many(shop, thief))).toBe(denied);
    expect(await judge(paid([10n, 10n], shop, shop))).toBe(allowed);
    expect(await judge(paid([1n, 11n], shop, shop))).toBe(denied);
    expect(await judge(paid([], shop, shop))).toBe(allowed);
    // Lists of different lengths, another function, trailing bytes, no bytes.
    expect(await judge(paid([1n], shop, shop))).toBe(denied);
    expect(await judge(encodeFunctionData({ abi: account, functionName: 'upgradeTo', args: [shop] }))).toBe(
      denied,
    );
    expect(await judge(`${one(shop, 1n)}00`)).toBe(denied);
    expect(await judge(many())).toBe(denied);
    expect(await judge('0x')).toBe(denied);
  });

  test('every call of a batched transaction needs its own permission', async () => {
    await using sandbox = await startSandbox();
    const wallet = await makeWallet(sandbox, 'ethereum', {
      rules: [
        allow('eth_signTransaction', when('ethereum_transaction', 'to', 'eq', shop)),
        deny('eth_signTransaction', when('tempo_transaction', 'fee_token', 'eq', thief)),
      ],
    });
    const judge = (fields: object, ...to: string[]) =>
      outcome(sandbox, 'walletRpc', {
        wallet,
        body: payment({ type: 118, calls: to.map((address) => ({ to: address })), ...fields }),
      });
    expect(await judge({}, shop, shop)).toBe(allowed);
    expect(await judge({}, shop, thief)).toBe(denied);
    expect(await judge({ fee_token: thief }, shop)).toBe(denied);
  });
});

describe('solana', () => {
  const payee = new PublicKey(new Uint8Array(32).fill(7));
  const rules = [
    allow(
      'signTransaction',
      when('solana_system_program_instruction', 'Transfer.to', 'eq', payee.toBase58()),
      when('solana_system_program_instruction', 'Transfer.lamports', 'lte', '5'),
    ),
    allow('signMessage'),
  ];
  const transferOf = (from: PublicKey, to: PublicKey, lamports: number) =>
    SystemProgram.transfer({ fromPubkey: from, toPubkey: to, lamports });

  test('every instruction needs its own permission, legacy and version 0 alike', async () => {
    await using sandbox = await startSandbox();
    const wallet = await makeWallet(sandbox, 'solana', { rules });
    const payer = new PublicKey(wallet.address);
    const recentBlockhash = PublicKey.default.toBase58();
    const judge = (...transfers: [PublicKey, number][]) => {
      const instructions = transfers.map(([to, lamports]) => transferOf(payer, to, lamports));
      const legacy = new Transaction({ feePayer: payer, recentBlockhash }).add(...instructions);
      const compiled = new TransactionMessage({
        payerKey: payer,
        recentBlockhash,
        instructions,
      }).compileToV0Message();
      const wires = [
        legacy.serialize({ requireAllSignatures: false }),
        new VersionedTransaction(compiled).serialize(),
      ];
      return Promise.all(
        wires.map((wire) => {
          const params = { transaction: Buffer.from(wire).toString('base64'), encoding: 'base64' };
          return outcome(sandbox, 'walletRpc', { wallet, body: { method: 'signTransaction', params } });
        }),
      );
    };
    expect(await judge([payee, 5])).toEqual([allowed, allowed]);
    expect(await judge([payee, 6])).toEqual([denied, denied]);
    expect(await judge([payee, 5], [payee, 1])).toEqual([allowed, allowed]);
    expect(await judge([payee, 5], [payer, 1])).toEqual([denied, denied]);
  });

  test('a message that is a transaction is evaluated as a transaction', async () => {
    await using sandbox = await startSandbox();
    const wallet = await makeWallet(sandbox, 'solana', { rules });
    const payer = new PublicKey(wallet.address);
    const recentBlockhash = PublicKey.default.toBase58();
    const judge = (message: Uint8Array) => {
      const params = { message: Buffer.from(message).toString('base64'), encoding: 'base64' };
      return outcome(sandbox, 'walletRpc', { wallet, body: { method: 'signMessage', params } });
    };
    const messages = (to: PublicKey) => {
      const instructions = [transferOf(payer, to, 5)];
      const legacy = new Transaction({ feePayer: payer, recentBlockhash }).add(...instructions);
      const message = new TransactionMessage({ payerKey: payer, recentBlockhash, instructions });
      return [legacy.serializeMessage(), message.compileToV0Message().serialize()];
    };
    for (const bytes of messages(payee)) expect(await judge(bytes)).toBe(allowed);
    for (const bytes of messages(payer)) {
      expect(await judge(bytes)).toBe(denied);
      // Truncated, so no validator would accept it.
      expect(await judge(bytes.subarray(0, -1))).toBe(allowed);
    }
    expect(await judge(Buffer.from('hello'))).toBe(allowed);
    expect(await judge(new Uint8Array())).toBe(allowed);
  });
});

test('tron: a transfer by its receiver and amount, a call by its data', async () => {
  await using sandbox = await startSandbox();
  const payee = `41${'ab'.repeat(20)}`;
  const wallet = await makeWallet(sandbox, 'tron', {
    rules: [
      allow(
        'tron_signTransaction',
        when('tron_transaction', 'TransferContract.to_address', 'eq', TronWeb.address.fromHex(payee)),
        when('tron_transaction', 'TransferContract.amount', 'lte', '100'),
      ),
    ],
  });
  const owner_address = TronWeb.address.toHex(wallet.address);
  const judge = (contract: object) => {
    const block = {
      ref_block_bytes: '1234',
      ref_block_hash: 'aabbccddeeff0011',
      expiration: 1_767_225_660_000,
    };
    const params = { raw_data: { contract: [{ owner_address, ...contract }], ...block } };
    return outcome(sandbox, 'walletRpc', { wallet, body: { method: 'tron_signTransaction', params } });
  };
  const transfer = { type: 'TransferContract', to_address: payee };
  expect(await judge({ ...transfer, amount: 100 })).toBe(allowed);
  expect(await judge({ ...transfer, amount: 101 })).toBe(denied);
  expect(await judge({ ...transfer, to_address: owner_address, amount: 1 })).toBe(denied);
  expect(await judge({ type: 'TriggerSmartContract', contract_address: payee })).toBe(denied);
});

test('xrpl: a payment by its destination and drops', async () => {
  await using sandbox = await startSandbox();
  const payee = 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh';
  const wallet = await makeWallet(sandbox, 'xrpl', {
    rules: [
      allow(
        'xrpl_signTransaction',
        when('xrpl_transaction', 'TransactionType', 'eq', 'Payment'),
        when('xrpl_transaction', 'Payment.Destination', 'eq', payee),
        when('xrpl_transaction', 'Payment.Amount.drops', 'lte', '100'),
      ),
    ],
  });
  const judge = (fields: object) => {
    const transaction = {
      TransactionType: 'Payment',
      Account: wallet.address,
      Fee: '12',
      Sequence: 1,
      ...fields,
    };
    const params = { transaction: encodeForSigning(transaction), encoding: 'hex' };
    return outcome(sandbox, 'walletRpc', { wallet, body: { method: 'xrpl_signTransaction', params } });
  };
  const issued = { currency: 'USD', issuer: payee, value: '1' };
  expect(await judge({ Destination: payee, Amount: '100' })).toBe(allowed);
  expect(await judge({ Destination: payee, Amount: '101' })).toBe(denied);
  expect(await judge({ Destination: payee, Amount: issued })).toBe(denied);
  expect(await judge({ Destination: wallet.address, Amount: '1' })).toBe(denied);
});

test('a rule for every method, and one that denies, on methods without rules of their own', async () => {
  await using sandbox = await startSandbox();
  const open = await makeWallet(sandbox, 'ethereum', { rules: [allow('*')] });
  const hash = { method: 'secp256k1_sign', params: { hash: `0x${'11'.repeat(32)}` } };
  expect(await outcome(sandbox, 'walletRpc', { wallet: open, body: hash })).toBe(allowed);
  const late = { ...always, operator: 'gt', value: '4102444800' } as const;
  const closed = await makeWallet(sandbox, 'ethereum', {
    rules: [allow('*'), deny('personal_sign'), deny('*', late)],
  });
  expect(await outcome(sandbox, 'walletRpc', { wallet: closed, body: hash })).toBe(allowed);
  expect(await outcome(sandbox, 'walletRpc', { wallet: closed, body: hello })).toBe(denied);
  sandbox.clock.set(4_102_444_801_000);
  expect(await outcome(sandbox, 'walletRpc', { wallet: closed, body: hash })).toBe(denied);
});

test('a rule without conditions matches every request: allow all, deny all, export', async () => {
  await using sandbox = await startSandbox();
  const rule = (method: Rule['method'], action: Rule['action']): Rule => ({
    name: `${action} ${method}`,
    method,
    action,
    conditions: [],
  });
  const recipient = { encryption_type: 'HPKE', recipient_public_key: makeRecipient().spki };
  const open = await makeWallet(sandbox, 'ethereum', { rules: [rule('*', 'ALLOW')] });
  expect(await outcome(sandbox, 'walletRpc', { wallet: open, body: hello })).toBe(allowed);
  const exporting = await makeWallet(sandbox, 'ethereum', { rules: [rule('exportPrivateKey', 'ALLOW')] });
  expect(await outcome(sandbox, 'exportWallet', { wallet: exporting, body: recipient })).toBe(allowed);
  expect(await outcome(sandbox, 'walletRpc', { wallet: exporting, body: hello })).toBe(denied);
  const closed = await makeWallet(sandbox, 'ethereum', { rules: [rule('*', 'ALLOW'), rule('*', 'DENY')] });
  expect(await outcome(sandbox, 'walletRpc', { wallet: closed, body: hello })).toBe(denied);
  // The routes of rules take them as well.
  const [policyId = ''] = open.policy_ids;
  const path = { policy_id: policyId };
  const added = await call(sandbox, 'createPolicyRule', { path, body: rule('personal_sign', 'DENY') });
  expect(added.body).toMatchObject({ conditions: [] });
  expect(await outcome(sandbox, 'walletRpc', { wallet: open, body: hello })).toBe(denied);
  await call(sandbox, 'updatePolicyRule', {
    path: { ...path, rule_id: added.body.id },
    body: rule('personal_sign', 'ALLOW'),
  });
  expect(await outcome(sandbox, 'walletRpc', { wallet: open, body: hello })).toBe(allowed);
});

test('near and spark sign under a rule for every method only', async () => {
  await using sandbox = await startSandbox();
  const message = { method: 'signMessageWithIdentityKey', params: { message: 'hello' } };
  const raw = await makeWallet(sandbox, 'spark', { rules: [allow('signRawMessageBytes')] });
  expect(await outcome(sandbox, 'walletRpc', { wallet: raw, body: message })).toBe(denied);
  const every = await makeWallet(sandbox, 'spark', { rules: [allow('*')] });
  expect(await outcome(sandbox, 'walletRpc', { wallet: every, body: message })).toBe(allowed);
});

test('a request that cannot be signed is invalid, not denied', async () => {
  await using sandbox = await startSandbox();
  const wallet = await makeWallet(sandbox, 'ethereum', { rules: [] });
  expect(await outcome(sandbox, 'walletRpc', { wallet, body: payment({ to: '0x12' }) })).toBe(
    '400 invalid_data',
  );
  expect(await outcome(sandbox, 'walletRpc', { wallet, body: payment({ to: shop }) })).toBe(denied);
});
