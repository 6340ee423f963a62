import {
  createPublicClient,
  createWalletClient,
  encodeDeployData,
  erc20Abi,
  getContract,
  getCreate2Address,
  type Hex,
  hashTypedData,
  http,
  keccak256,
  parseAbi,
  parseEther,
  parseSignature,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';

// The contracts that a chain begins with, through the interfaces that their authors published, by viem.

const usdc: Hex = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const weth: Hex = '0x4200000000000000000000000000000000000006';
const stranger: Hex = `0x${'5a'.repeat(20)}`;
const alice = privateKeyToAccount(`0x${'a1'.repeat(32)}`);
const payer = privateKeyToAccount(`0x${'b2'.repeat(32)}`);

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen' });
  for (const { address } of [alice, payer]) await sandbox.faucet(address, { chain: 'base', amount: '1' });
  await sandbox.faucet(alice.address, { chain: 'base', asset: 'usdc', amount: '10' });
});
afterAll(() => sandbox.close());

const transport = () => http(`${sandbox.baseUrl}/_sandbox/rpc/base`, { fetchFn: sandbox.fetch });
const reader = () => createPublicClient({ chain: base, transport: transport(), pollingInterval: 20 });
const writer = (account = payer) => createWalletClient({ account, chain: base, transport: transport() });

async function included(hash: Hex) {
  await sandbox.mine(1, 'base');
  const receipt = await reader().waitForTransactionReceipt({ hash });
  expect(receipt.status).toBe('success');
  return receipt;
}

const balanceOf = (token: Hex, owner: Hex) =>
  reader().readContract({ address: token, abi: erc20Abi, functionName: 'balanceOf', args: [owner] });

/** The domain that wallets use for USD Coin. Source: Circle, EIP-3009 and EIP-2612 of FiatTokenV2_2. */
const domain = { name: 'USD Coin', version: '2', chainId: base.id, verifyingContract: usdc };
const usdcAbi = parseAbi([
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function nonces(address) view returns (uint256)',
  'function permit(address, address, uint256, uint256, uint8, bytes32, bytes32)',
  'function transferWithAuthorization(address, address, uint256, uint256, uint256, bytes32, uint8, bytes32, bytes32)',
  'function authorizationState(address, bytes32) view returns (bool)',
]);

describe('USD Coin', () => {
  test('a permit that viem signs lets its spender take the money, once', async () => {
    const permit = {
      owner: alice.address,
      spender: payer.address,
      value: 5n,
      nonce: 0n,
      deadline: 2n ** 40n,
    };
    const signature = await alice.signTypedData({
      ...{ domain, primaryType: 'Permit', message: permit },
      types: {
        Permit: [
          { name: 'owner', type: 'address' },
          { name: 'spender', type: 'address' },
          { name: 'value', type: 'uint256' },
          { name: 'nonce', type: 'uint256' },
          { name: 'deadline', type: 'uint256' },
        ],
      },
    });
    const { r, s, v } = parseSignature(signature);
    const call = {
      ...{ address: usdc, abi: usdcAbi, functionName: 'permit' as const },
      args: [permit.owner, permit.spender, permit.value, permit.deadline, Number(v), r, s],
    } as const;
    await included(await writer().writeContract(call));
    await expect(reader().simulateContract({ ...call, account: payer })).rejects.toThrow('invalid signature');
    const transfer = {
      ...{ address: usdc, abi: erc20Abi, functionName: 'transferFrom' as const },
      args: [alice.address, stranger, 5n],
    } as const;
    await included(await writer().writeContract(transfer));
    expect(await balanceOf(usdc, stranger)).toBe(5n);
    await expect(reader().simulateContract({ ...transfer, account: payer })).rejects.toThrow('allowance');
  });

  test('an authorization that viem signs moves the money, once and in its window', async () => {
    const nonce: Hex = `0x${'7e'.repeat(32)}`;
    const order = {
      from: alice.address,
      to: payer.address,
      value: 3n,
      validAfter: 0n,
      validBefore: 2n ** 40n,
      nonce,
    };
    const types = {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    } as const;
    const callFor = async (message: typeof order) => {
      const signature = await alice.signTypedData({
        domain,
        types,
        primaryType: 'TransferWithAuthorization',
        message,
      });
      const { r, s, v } = parseSignature(signature);
      const { from, to, value, validAfter, validBefore } = message;
      return {
        ...{ address: usdc, abi: usdcAbi, functionName: 'transferWithAuthorization' as const },
        args: [from, to, value, validAfter, validBefore, nonce, Number(v), r, s],
      } as const;
    };
    const call = await callFor(order);
    const [before] = [await balanceOf(usdc, payer.address)];
    const other = { ...call, args: call.args.with(2, 4n) } as unknown as typeof call;
    await expect(reader().simulateContract({ ...other, account: payer })).rejects.toThrow(
      'invalid signature',
    );
    const expired = await callFor({ ...order, validBefore: 1n });
    await expect(reader().simulateContract({ ...expired, account: payer })).rejects.toThrow('expired');
    await included(await writer().writeContract(call));
    expect(await balanceOf(usdc, payer.address)).toBe(before + 3n);
    await expect(reader().simulateContract({ ...call, account: payer })).rejects.toThrow('used or canceled');
  });

  test('its domain is the one that wallets sign', async () => {
    const separator = await reader().readContract({
      address: usdc,
      abi: usdcAbi,
      functionName: 'DOMAIN_SEPARATOR',
    });
    const digest = hashTypedData({ domain, types: { Any: [] }, primaryType: 'Any', message: {} });
    const message = keccak256(keccak256('0x416e792829'));
    expect(digest).toBe(keccak256(`0x1901${separator.slice(2)}${message.slice(2)}`));
  });
});

describe('other contracts', () => {
  test('the wrapped native asset is minted for what it gets, and pays it back', async () => {
    const abi = parseAbi(['function deposit() payable', 'function withdraw(uint256)']);
    const wrapped = getContract({ address: weth, abi, client: { public: reader(), wallet: writer() } });
    const before = await reader().getBalance({ address: weth });
    await included(await wrapped.write.deposit({ value: parseEther('0.25') }));
    await included(await writer().sendTransaction({ to: weth, value: parseEther('0.5') }));
    expect(await balanceOf(weth, payer.address)).toBe(parseEther('0.75'));
    await included(await wrapped.write.withdraw([parseEther('0.7')]));
    expect(await balanceOf(weth, payer.address)).toBe(parseEther('0.05'));
    expect((await reader().getBalance({ address: weth })) - before).toBe(parseEther('0.05'));
  });

  test("viem's multicall reads several contracts in one call, and says which of them failed", async () => {
    const contracts = [
      { address: usdc, abi: erc20Abi, functionName: 'decimals' },
      { address: weth, abi: erc20Abi, functionName: 'symbol' },
      { address: stranger, abi: erc20Abi, functionName: 'symbol' },
    ] as const;
    expect(await reader().multicall({ contracts })).toMatchObject([
      { status: 'success', result: 6 },
      { status: 'success', result: 'WETH' },
      { status: 'failure' },
    ]);
  });

  test('the CREATE2 deployer puts the same code at the same address as on every chain', async () => {
    const deployer: Hex = '0x4e59b44847b379578588920cA78FbF26c0B4956C';
    // Returns the code 00.
    const initCode = encodeDeployData({ abi: [], bytecode: '0x60015ff3' });
    const salt: Hex = `0x${'00'.repeat(32)}`;
    const at = getCreate2Address({ from: deployer, salt, bytecode: initCode });
    await included(await writer().sendTransaction({ to: deployer, data: `${salt}${initCode.slice(2)}` }));
    expect(await reader().getCode({ address: at })).toBe('0x00');
  });
});
