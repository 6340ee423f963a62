import { readFileSync } from 'node:fs';
import { ContractFactory, FetchRequest, JsonRpcProvider, Wallet } from 'ethers';
import {
  type Abi,
  createPublicClient,
  createWalletClient,
  erc20Abi,
  getContractAddress,
  type Hex,
  http,
  isHash,
  parseEther,
  parseEventLogs,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';

// Libraries that know nothing of the sandbox use its chains as they use a node.

const key: Hex = `0x${'5e'.repeat(32)}`;
const usdc: Hex = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const stranger: Hex = `0x${'5a'.repeat(20)}`;
const { Token } = JSON.parse(
  readFileSync(new URL('../../vectors/contracts/golden/vault.json', import.meta.url), 'utf8'),
) as { Token: { abi: Abi; bytecode: Hex } };

let sandbox: TestSandbox;
let url: string;

beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen' });
  url = `${sandbox.baseUrl}/_sandbox/rpc/base`;
});
afterAll(() => sandbox.close());

const transport = () => http(url, { fetchFn: sandbox.fetch });

/** The raw response of JSON-RPC. */
async function ask(body: unknown, chain = 'base'): Promise<{ status: number; body: unknown }> {
  const response = await sandbox.fetch(`${sandbox.baseUrl}/_sandbox/rpc/${chain}`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
  });
  return { status: response.status, body: await response.json() };
}

describe('viem', () => {
  const account = privateKeyToAccount(key);
  const clients = () => ({
    reader: createPublicClient({ chain: base, transport: transport(), pollingInterval: 20 }),
    writer: createWalletClient({ account, chain: base, transport: transport() }),
  });
  let token: Hex;

  async function included(hash: Hex) {
    await sandbox.mine(1, 'base');
    return clients().reader.waitForTransactionReceipt({ hash });
  }

  beforeAll(async () => {
    await sandbox.faucet(account.address, { chain: 'base', amount: '1' });
    const hash = await clients().writer.deployContract({ ...Token, args: [6] });
    const receipt = await included(hash);
    token = receipt.contractAddress!;
  });

  test('deploys a contract, writes to it, waits for the receipt and reads', async () => {
    const { reader, writer } = clients();
    const hash = await writer.writeContract({
      ...{ address: token, abi: Token.abi, functionName: 'mint', args: [account.address, 1_000n] },
    });
    expect(await reader.getTransactionCount({ address: account.address, blockTag: 'pending' })).toBe(2);
    const receipt = await included(hash);
    expect(receipt).toMatchObject({ status: 'success', from: account.address.toLowerCase(), to: token });
    const [event] = parseEventLogs({ abi: erc20Abi, logs: receipt.logs });
    expect(event).toMatchObject({ eventName: 'Transfer', args: { to: account.address, value: 1_000n } });
    const held = {
      address: token,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [account.address],
    } as const;
    expect(await reader.readContract(held)).toBe(1_000n);
    expect(await reader.getCode({ address: token })).toMatch(/^0x6080/);
    // Slot 2 of OpenZeppelin's token is the supply.
    expect(BigInt((await reader.getStorageAt({ address: token, slot: '0x2' }))!)).toBe(1_000n);
  });

  test('decodes the custom error of a revert, in a simulation and in an estimate', async () => {
    const { reader } = clients();
    const tooMuch = { address: token, abi: Token.abi, functionName: 'transfer', args: [stranger, 5_000n] };
    await expect(reader.simulateContract({ ...tooMuch, account })).rejects.toThrow(
      'ERC20InsufficientBalance',
    );
    await expect(reader.estimateContractGas({ ...tooMuch, account })).rejects.toThrow(
      'ERC20InsufficientBalance',
    );
  });

  test('viem: reads blocks, transactions, logs and fees', async () => {
    const { reader, writer } = clients();
    const hash = await writer.sendTransaction({ to: stranger, value: 7n });
    const { blockNumber, blockHash, effectiveGasPrice } = await included(hash);
    const block = await reader.getBlock({ blockHash, includeTransactions: true });
    expect(block.number).toBe(blockNumber);
    const found = block.transactions.find((each) => each.hash === hash)!;
    expect(found).toMatchObject({ value: 7n, to: stranger, type: 'eip1559', chainId: base.id });
    expect(await reader.getTransaction({ hash })).toMatchObject({
      hash,
      blockHash,
      value: 7n,
      nonce: found.nonce,
    });
    expect(effectiveGasPrice).toBeGreaterThan(0n);
    expect(isHash(block.parentHash)).toBe(true);
    const logs = await reader.getContractEvents({ address: token, abi: erc20Abi, fromBlock: 0n });
    expect(logs.map(({ eventName }) => eventName)).toEqual(['Transfer']);
    const nobodys = { address: token, abi: erc20Abi, eventName: 'Transfer', fromBlock: 0n } as const;
    expect(await reader.getContractEvents({ ...nobodys, args: { to: stranger } })).toEqual([]);
    const fees = await reader.estimateFeesPerGas();
    expect(fees.maxFeePerGas).toBeGreaterThan(fees.maxPriorityFeePerGas);
    const history = await reader.getFeeHistory({ blockCount: 4, rewardPercentiles: [25, 75] });
    expect(history.reward).toHaveLength(4);
  });

  test('viem: calls with changed state, which changes nothing', async () => {
    const { reader } = clients();
    const poor = `0x${'0d'.repeat(20)}` as const;
    const call = { account: poor, to: stranger, value: parseEther('3') };
    await expect(reader.call(call)).rejects.toThrow('insufficient funds');
    const stateOverride = [{ address: poor, balance: parseEther('4') }];
    expect(await reader.call({ ...call, stateOverride })).toEqual({ data: undefined });
    expect(await reader.getBalance({ address: poor })).toBe(0n);
  });

  test('delegates an account to a contract (EIP-7702)', async () => {
    const { reader, writer } = clients();
    const authorization = await writer.signAuthorization({ contractAddress: token, executor: 'self' });
    const hash = await writer.sendTransaction({ authorizationList: [authorization], to: stranger });
    await included(hash);
    expect(await reader.getCode({ address: account.address })).toBe(
      `0xef0100${token.slice(2).toLowerCase()}`,
    );
    expect(await reader.getTransaction({ hash })).toMatchObject({ type: 'eip7702' });
  });

  test('pays a wallet of the sandbox, which is told of the deposit', async () => {
    const { address } = (await sandbox.call('getWallet', {
      path: { wallet_id: 'ext_wal_alice' },
    })) as unknown as {
      address: Hex;
    };
    await sandbox.faucet(account.address, { chain: 'base', asset: 'usdc', amount: '10' });
    const transfer = {
      address: usdc,
      abi: erc20Abi,
      functionName: 'transfer',
      args: [address, 2_500_000n],
    } as const;
    const hash = await clients().writer.writeContract(transfer);
    await included(hash);
    const event = await sandbox.waitForEvent('wallet.funds_deposited');
    expect(JSON.stringify(event)).toContain(hash);
  });
});

test('ethers deploys, writes, waits and queries events', async () => {
  const request = new FetchRequest(url);
  request.getUrlFunc = async ({ body, headers }) => {
    const response = await sandbox.fetch(url, {
      method: 'POST',
      headers,
      body: Buffer.from(body!).toString(),
    });
    return {
      ...{ statusCode: response.status, statusMessage: '', headers: {} },
      body: new Uint8Array(await response.arrayBuffer()),
    };
  };
  const provider = new JsonRpcProvider(request, base.id, {
    staticNetwork: true,
    pollingInterval: 20,
    cacheTimeout: -1,
  });
  const wallet = new Wallet(`0x${'6f'.repeat(32)}`, provider);
  await sandbox.faucet(wallet.address, { chain: 'base', amount: '1' });
  const factory = new ContractFactory(Token.abi as never, Token.bytecode, wallet);
  const contract = await factory.deploy(18);
  await sandbox.mine(1, 'base');
  await contract.waitForDeployment();
  const minted = await contract.getFunction('mint')(wallet.address, 12n);
  await sandbox.mine(1, 'base');
  expect((await minted.wait()).status).toBe(1);
  expect(await contract.getFunction('totalSupply')()).toBe(12n);
  expect(await provider.getLogs({ address: await contract.getAddress(), fromBlock: 0 })).toHaveLength(1);
  await expect(contract.getFunction('transfer').staticCall(stranger, 13n)).rejects.toMatchObject({
    ...{ code: 'CALL_EXCEPTION', revert: { name: 'ERC20InsufficientBalance' } },
  });
  provider.destroy();
});

test('viem reads the state of earlier blocks', async () => {
  const account = privateKeyToAccount(`0x${'e5'.repeat(32)}`);
  const reader = createPublicClient({ chain: base, transport: transport(), pollingInterval: 20 });
  const writer = createWalletClient({ account, chain: base, transport: transport() });
  const other: Hex = `0x${'e6'.repeat(20)}`;
  await sandbox.faucet(account.address, { chain: 'base', amount: '1' });
  await sandbox.faucet(account.address, { chain: 'base', token_address: usdc, amount: '5' });
  const included = async (sent: Promise<Hex>) => {
    const hash = await sent;
    await sandbox.mine(1, 'base');
    return (await reader.waitForTransactionReceipt({ hash })).blockNumber;
  };
  const transfer = { abi: erc20Abi, address: usdc, functionName: 'transfer', args: [other, 2n] } as const;
  const blocks = [
    await included(writer.sendTransaction({ to: other, value: 3n })),
    await included(writer.writeContract(transfer)),
    await included(writer.deployContract({ ...Token, args: [6] })),
    await included(writer.writeContract(transfer)),
  ] as const;
  const contract = getContractAddress({ from: account.address, nonce: 2n });
  const at = async (blockNumber: bigint) => ({
    nonce: await reader.getTransactionCount({ address: account.address, blockNumber }),
    native: await reader.getBalance({ address: other, blockNumber }),
    token: await reader.readContract({
      ...{ abi: erc20Abi, address: usdc, functionName: 'balanceOf', args: [other], blockNumber },
    }),
    isDeployed: (await reader.getCode({ address: contract, blockNumber })) !== undefined,
  });
  expect(await Promise.all([blocks[0] - 1n, ...blocks].map(at))).toEqual([
    { nonce: 0, native: 0n, token: 0n, isDeployed: false },
    { nonce: 1, native: 3n, token: 0n, isDeployed: false },
    { nonce: 2, native: 3n, token: 2n, isDeployed: false },
    { nonce: 3, native: 3n, token: 2n, isDeployed: true },
    { nonce: 4, native: 3n, token: 4n, isDeployed: true },
  ]);
  // A deposit is not a transaction, so what was before it is unknown.
  await sandbox.faucet(other, { chain: 'base', amount: '1' });
  await sandbox.mine(1, 'base');
  await expect(at(blocks[2])).rejects.toThrow('is not kept: use the latest block');
});

describe('malformed and unknown calls', () => {
  const call = (method: string, ...params: unknown[]) => ({ jsonrpc: '2.0', id: 1, method, params });

  test.each([
    ['an unknown method', call('eth_mineForever'), -32_601],
    ['no method', { jsonrpc: '2.0', id: 1 }, -32_600],
    ['params by name', { ...call('eth_chainId'), params: {} }, -32_600],
    ['a name of Object', call('constructor'), -32_601],
    ['no address', call('eth_getBalance', 'alice', 'latest'), -32_602],
    ['an odd number of digits', call('eth_sendRawTransaction', '0x1'), -32_602],
    ['bytes that are no transaction', call('eth_sendRawTransaction', '0xdeadbeef'), -32_000],
    ['a block that is not there', call('eth_getBalance', stranger, '0xffffffffffff'), -32_000],
    ['too many topics', call('eth_getLogs', { topics: [null, null, null, null, null] }), -32_602],
  ])('%s is an error of JSON-RPC', async (_, body, code) => {
    expect(await ask(body)).toMatchObject({ status: 200, body: { jsonrpc: '2.0', error: { code } } });
  });

  test('a batch is answered in its order; one of more than 1,000 calls is refused', async () => {
    const { body } = await ask(
      [call('eth_chainId'), call('no_such'), { ...call('net_version'), id: 'x' }],
      '8453',
    );
    expect(body).toMatchObject([
      { result: '0x2105' },
      { error: { code: -32_601 } },
      { id: 'x', result: '8453' },
    ]);
    const many = Array.from({ length: 1_001 }, () => call('eth_chainId'));
    expect(await ask(many)).toMatchObject({ status: 400 });
  });

  test('a chain whose nodes have no JSON-RPC is refused', async () => {
    expect(await ask(call('eth_chainId'), 'tron')).toMatchObject({
      status: 400,
      body: { code: 'invalid_data' },
    });
  });
});
