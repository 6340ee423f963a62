import { readFileSync } from 'node:fs';
import {
  type Abi,
  type BaseError,
  concat,
  createPublicClient,
  createWalletClient,
  decodeErrorResult,
  encodeFunctionData,
  type Hex,
  http,
  parseAbi,
  parseEther,
  parseEventLogs,
} from 'viem';
import {
  createBundlerClient,
  entryPoint07Abi,
  entryPoint07Address,
  entryPoint08Abi,
  entryPoint08Address,
  getUserOperationHash,
  toSmartAccount,
} from 'viem/account-abstraction';
import { privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';

// Accounts that are contracts of the user: a factory creates them, and the bundler of the chain runs their operations.

const contracts = JSON.parse(
  readFileSync(new URL('../../vectors/contracts/golden/account.json', import.meta.url), 'utf8'),
) as Record<'OwnedAccount' | 'AccountFactory' | 'OpenPaymaster', { abi: Abi; bytecode: Hex }>;
const accountAbi = parseAbi(['function execute(address target, uint256 value, bytes data)']);
const factoryAbi = parseAbi(['function create(address owner, address entryPoint) returns (address)']);
const versions = {
  '0.7': { address: entryPoint07Address, abi: entryPoint07Abi },
  '0.8': { address: entryPoint08Address, abi: entryPoint08Abi },
} as const;
const stranger: Hex = `0x${'5a'.repeat(20)}`;

let sandbox: TestSandbox;
let factory: Hex;
const deployer = privateKeyToAccount(`0x${'d1'.repeat(32)}`);
const clients = () => {
  const transport = http(`${sandbox.rpcUrl}/base`);
  const client = createPublicClient({ chain: base, transport, pollingInterval: 20 });
  return { transport, client, writer: createWalletClient({ account: deployer, chain: base, transport }) };
};

async function deploy(name: keyof typeof contracts): Promise<Hex> {
  const { client, writer } = clients();
  const hash = await writer.deployContract({ ...contracts[name], args: [] });
  return (await client.waitForTransactionReceipt({ hash })).contractAddress!;
}

beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen', rpcPort: 0, confirmAfterMs: 0, seedData: false });
  await sandbox.faucet(deployer.address, { chain: 'base', amount: '10' });
  factory = await deploy('AccountFactory');
});
afterAll(() => sandbox.close());

async function makeAccount(version: keyof typeof versions, digit: string) {
  const { transport, client } = clients();
  const owner = privateKeyToAccount(`0x${digit.repeat(64)}`);
  const entryPoint = { ...versions[version], version };
  const factoryData = encodeFunctionData({ abi: factoryAbi, args: [owner.address, entryPoint.address] });
  // The entry point answers with a revert.
  const asked = encodeFunctionData({
    ...{ abi: entryPoint07Abi, functionName: 'getSenderAddress', args: [concat([factory, factoryData])] },
  });
  const refusal = await client
    .request({ method: 'eth_call', params: [{ to: entryPoint.address, data: asked }, 'latest'] })
    .catch(
      (error: BaseError) =>
        (error.walk((each) => (each as { data?: Hex }).data !== undefined) as unknown as { data: Hex }).data,
    );
  const address = decodeErrorResult({ abi: entryPoint07Abi, data: refusal }).args[0] as Hex;
  const account = await toSmartAccount({
    ...{ client, entryPoint: entryPoint as { address: Hex; abi: typeof entryPoint07Abi; version: '0.7' } },
    getAddress: async () => address,
    getFactoryArgs: async () => ({ factory, factoryData }),
    encodeCalls: async ([call]) =>
      encodeFunctionData({ abi: accountAbi, args: [call!.to, call!.value ?? 0n, call!.data ?? '0x'] }),
    getStubSignature: async () => `0x${'00'.repeat(31)}01${'00'.repeat(31)}011b`,
    signMessage: () => Promise.reject(new Error('unused')),
    signTypedData: () => Promise.reject(new Error('unused')),
    async signUserOperation({ chainId = base.id, ...userOperation }) {
      const hash = getUserOperationHash({
        ...{ chainId, entryPointAddress: entryPoint.address, entryPointVersion: version as '0.7' },
        userOperation: { ...userOperation, sender: address } as never,
      });
      return owner.sign({ hash });
    },
  });
  const bundler = createBundlerClient({ account, client, transport, pollingInterval: 20 });
  return { account, address, bundler, client, transport, entryPoint };
}

test.each(['0.7', '0.8'] as const)(
  'the first operation of an account deploys it (entry point %s)',
  async (version) => {
    const { account, address, bundler, client, entryPoint } = await makeAccount(
      version,
      version === '0.7' ? '7' : '8',
    );
    expect(await client.getCode({ address })).toBeUndefined();
    await expect(bundler.sendUserOperation({ calls: [{ to: stranger }] })).rejects.toThrow('AA21');
    await sandbox.faucet(address, { chain: 'base', amount: '1' });
    const before = await client.getBalance({ address: stranger });
    const hash = await bundler.sendUserOperation({ calls: [{ to: stranger, value: 5n }] });
    const receipt = await bundler.waitForUserOperationReceipt({ hash });
    expect(receipt).toMatchObject({ success: true, entryPoint: entryPoint.address });
    expect(await client.getCode({ address })).toMatch(/^0x/);
    expect(await client.getBalance({ address: stranger })).toBe(before + 5n);
    const events = parseEventLogs({ abi: entryPoint.abi, logs: receipt.receipt.logs });
    expect(events.map(({ eventName }) => eventName)).toEqual([
      ...['AccountDeployed', 'Deposited', 'BeforeExecution', 'UserOperationEvent'],
    ]);
    expect(events.at(-1)!.args).toMatchObject({ userOpHash: hash, sender: account.address, success: true });
    // What the account has paid more than the cost is its deposit.
    const deposit = await client.readContract({
      ...{ abi: entryPoint07Abi, address: entryPoint.address, functionName: 'balanceOf', args: [address] },
    });
    const paid = parseEther('1') - 5n - (await client.getBalance({ address }));
    expect(paid - deposit).toBe(receipt.actualGasCost);
    const transaction = await client.getTransaction({ hash: receipt.receipt.transactionHash });
    expect(transaction.to).toBe(entryPoint.address.toLowerCase());
    const books = await (await sandbox.fetch(`${sandbox.baseUrl}/_sandbox/books`)).json();
    const [{ given, held }] = (books as { data: [{ given: string; held: Record<string, string> }] }).data;
    expect(Object.values(held).reduce((sum, amount) => sum + BigInt(amount), 0n)).toBe(BigInt(given));
    // The account exists now, and its nonce is the next one.
    expect(await account.getNonce({ key: BigInt(receipt.nonce) >> 64n })).toBe(BigInt(receipt.nonce) + 1n);
  },
);

test('an inner call that reverts fails the operation, and the entry point says why', async () => {
  const { address, bundler, client } = await makeAccount('0.7', '6');
  await sandbox.faucet(address, { chain: 'base', amount: '1' });
  const call = { to: factory, data: '0xdeadbeef' as Hex };
  await expect(bundler.sendUserOperation({ calls: [call] })).rejects.toThrow('reverted');
  const target = {
    to: entryPoint07Address,
    data: encodeFunctionData({
      abi: entryPoint07Abi,
      functionName: 'withdrawTo',
      args: [stranger, 2n ** 200n],
    }),
  };
  const gas = { callGasLimit: 200_000n, verificationGasLimit: 700_000n, preVerificationGas: 60_000n };
  const hash = await bundler.sendUserOperation({ calls: [target], ...gas });
  const { success, reason, receipt } = await bundler.waitForUserOperationReceipt({ hash });
  expect({ success, status: receipt.status }).toEqual({ success: false, status: 'success' });
  expect(decodeErrorResult({ data: reason as Hex })).toMatchObject({ args: ['Withdraw amount too large'] });
  expect(await client.getCode({ address })).toMatch(/^0x/);
});

test('a paymaster of the user pays from its deposit, and a wrong signature is refused', async () => {
  const { address, bundler, client } = await makeAccount('0.7', '5');
  const { writer } = clients();
  const paymaster = await deploy('OpenPaymaster');
  const send = () =>
    bundler.sendUserOperation({
      calls: [{ to: stranger }],
      paymaster,
      paymasterData: '0x',
      paymasterPostOpGasLimit: 100_000n,
    });
  await expect(send()).rejects.toThrow('AA31');
  const deposited = await writer.writeContract({
    ...{ abi: entryPoint07Abi, address: entryPoint07Address, functionName: 'depositTo', args: [paymaster] },
    value: parseEther('1'),
  });
  await client.waitForTransactionReceipt({ hash: deposited });
  const { success, receipt, actualGasCost } = await bundler.waitForUserOperationReceipt({
    hash: await send(),
  });
  expect(success).toBe(true);
  expect(receipt.logs.some((log) => log.address === paymaster.toLowerCase())).toBe(true);
  const args = {
    abi: entryPoint07Abi,
    address: entryPoint07Address,
    functionName: 'balanceOf',
    args: [paymaster],
  } as const;
  expect(await client.readContract(args)).toBe(parseEther('1') - actualGasCost);
  expect(await client.getBalance({ address })).toBe(0n);
  const signature: Hex = `0x${'00'.repeat(31)}01${'00'.repeat(31)}011b`;
  const prepared = await bundler.prepareUserOperation({
    calls: [{ to: stranger }],
    paymaster,
    paymasterData: '0x',
  });
  const wrong = { ...prepared, signature, entryPointAddress: entryPoint07Address } as never;
  const { account: _, ...others } = prepared as { account?: unknown };
  await expect(
    createBundlerClient({ chain: base, transport: http(`${sandbox.rpcUrl}/base`) }).sendUserOperation({
      ...others,
      ...(wrong as object),
    } as never),
  ).rejects.toThrow('AA24');
});
