import {
  createClient,
  createPublicClient,
  decodeErrorResult,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  http,
  parseEther,
  parseEventLogs,
  publicActions,
} from 'viem';
import {
  bundlerActions,
  createBundlerClient,
  createPaymasterClient,
  entryPoint07Address,
  entryPoint08Abi,
  entryPoint08Address,
  entryPoint09Address,
  toSimple7702SmartAccount,
} from 'viem/account-abstraction';
import { privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';

// The bundler and the paymaster of a chain, by viem's client for account abstraction.

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen', rpcPort: 0, confirmAfterMs: 0, seedData: false });
});
afterAll(() => sandbox.close());

const stranger: Hex = `0x${'5a'.repeat(20)}`;
let accounts = 0;

async function makeAccount() {
  accounts += 1;
  const owner = privateKeyToAccount(`0x9${accounts.toString(16).padStart(63, '0')}`);
  const transport = http(`${sandbox.rpcUrl}/base`);
  const client = createPublicClient({ chain: base, transport, pollingInterval: 20 });
  const account = await toSimple7702SmartAccount({ client, owner });
  const paymaster = createPaymasterClient({ transport });
  const bundler = createBundlerClient({ account, client, transport, paymaster, pollingInterval: 20 });
  const authorize = () =>
    owner.signAuthorization({ address: account.authorization!.address, chainId: base.id, nonce: 0 });
  return { owner, client, account, bundler, authorize, transport };
}

test('an account without funds delegates itself and sends sponsored operations', async () => {
  const { account, bundler, client, authorize } = await makeAccount();
  const token: Hex = `0x${'7e'.repeat(20)}`;
  await sandbox.faucet(account.address, { chain: 'base', token_address: token, amount: '5', decimals: 6 });
  const call = {
    to: token,
    data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [stranger, 2n] }),
  };
  const hash = await bundler.sendUserOperation({ calls: [call], authorization: await authorize() });
  const receipt = await bundler.waitForUserOperationReceipt({ hash });
  expect(receipt).toMatchObject({ success: true, userOpHash: hash });
  expect(receipt.logs).toMatchObject([{ address: token }, { address: entryPoint08Address.toLowerCase() }]);
  expect(receipt.receipt.status).toBe('success');
  expect(await client.getCode({ address: account.address })).toMatch(/^0xef0100/);
  const found = await bundler.getUserOperation({ hash });
  expect(found).toMatchObject({
    entryPoint: entryPoint08Address,
    transactionHash: receipt.receipt.transactionHash,
    userOperation: { sender: account.address.toLowerCase(), paymaster: expect.stringMatching(/fa7e5$/i) },
  });
  // Now it is delegated, and a batch is one operation.
  const batch = await bundler.sendUserOperation({ calls: [call, call] });
  expect((await bundler.waitForUserOperationReceipt({ hash: batch })).success).toBe(true);
  const held = { address: token, abi: erc20Abi, functionName: 'balanceOf', args: [stranger] } as const;
  expect(await client.readContract(held)).toBe(6n);
  expect(await client.getBalance({ address: account.address })).toBe(0n);
});

test('an account without a paymaster pays for its operation itself', async () => {
  const { account, client, authorize, transport } = await makeAccount();
  const bundler = createBundlerClient({ account, client, transport, pollingInterval: 20 });
  const send = async () =>
    bundler.sendUserOperation({ calls: [{ to: stranger, value: 9n }], authorization: await authorize() });
  await sandbox.faucet(account.address, { chain: 'base', amount: '1' });
  const hash = await send();
  const { success, actualGasCost } = await bundler.waitForUserOperationReceipt({ hash });
  expect(success).toBe(true);
  expect(await client.getBalance({ address: account.address })).toBe(parseEther('1') - 9n - actualGasCost);
});

test('the entry point reports an operation whose call reverts', async () => {
  const { account, bundler, authorize } = await makeAccount();
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [stranger, 2n] });
  const token: Hex = `0x${'7d'.repeat(20)}`;
  await sandbox.faucet(account.address, {
    chain: 'base',
    token_address: token,
    amount: '0.000001',
    decimals: 6,
  });
  const gas = { callGasLimit: 100_000n, verificationGasLimit: 100_000n, preVerificationGas: 50_000n };
  const hash = await bundler.sendUserOperation({
    ...{ calls: [{ to: token, data }], authorization: await authorize(), ...gas },
  });
  const { success, reason, receipt, actualGasCost, actualGasUsed, nonce } =
    await bundler.waitForUserOperationReceipt({ hash });
  expect({ success, status: receipt.status, to: receipt.to }).toEqual({
    ...{ success: false, status: 'success', to: entryPoint08Address.toLowerCase() },
  });
  const events = parseEventLogs({ abi: entryPoint08Abi, logs: receipt.logs });
  expect(events.map(({ eventName }) => eventName)).toEqual([
    ...['BeforeExecution', 'UserOperationRevertReason', 'UserOperationEvent'],
  ]);
  const { args } = parseEventLogs({
    abi: entryPoint08Abi,
    eventName: 'UserOperationEvent',
    logs: receipt.logs,
  })[0]!;
  expect(args).toMatchObject({
    ...{
      userOpHash: hash,
      sender: account.address,
      success,
      nonce: BigInt(nonce),
      actualGasCost,
      actualGasUsed,
    },
    paymaster: expect.stringMatching(/fa7e5$/i),
  });
  expect(decodeErrorResult({ data: reason as Hex })).toMatchObject({ errorName: 'Error' });
});

test('operations that cannot be included are refused with the codes of ERC-7769', async () => {
  const { account, bundler, authorize, transport } = await makeAccount();
  const client = createClient({ chain: base, transport }).extend(bundlerActions).extend(publicActions);
  expect(await client.getSupportedEntryPoints()).toEqual([
    ...[entryPoint08Address, entryPoint07Address, entryPoint09Address],
  ]);
  const authorization = await authorize();
  const prepared = await bundler.prepareUserOperation({ calls: [{ to: stranger }], authorization });
  const signature = await account.signUserOperation(prepared);
  const send = (changes: object, entryPointAddress: Hex = entryPoint08Address) =>
    client.sendUserOperation({ ...prepared, signature, entryPointAddress, ...changes } as never);
  await expect(send({ nonce: prepared.nonce + 1n })).rejects.toThrow('AA24');
  await expect(send({ signature: `0x${'11'.repeat(65)}` })).rejects.toThrow('expected a secp256k1 signature');
  await expect(send({}, `0x${'43'.repeat(20)}`)).rejects.toThrow('unsupported entry point');
  const other = { ...prepared, nonce: prepared.nonce + 1n };
  await expect(send({ ...other, signature: await account.signUserOperation(other) })).rejects.toThrow('AA25');
  const alien = { ...prepared, paymaster: stranger };
  await expect(send({ ...alien, signature: await account.signUserOperation(alien) })).rejects.toThrow('AA30');
  await expect(bundler.getUserOperationReceipt({ hash: `0x${'00'.repeat(32)}` })).rejects.toThrow(
    'could not be found',
  );
});
