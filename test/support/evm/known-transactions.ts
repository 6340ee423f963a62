import {
  concat,
  getContractAddress,
  type Hex,
  keccak256,
  numberToHex,
  pad,
  parseEther,
  zeroAddress,
} from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { randomOf } from '../../simulation/random.ts';
import { calling, creating } from './known-contracts.ts';
import { CHAIN_ID } from './pair.ts';
import { precompileInput } from './precompile-inputs.ts';

/** A transaction of the kinds that are sent most, without what a sender fills in. */
export interface Known {
  readonly name: string;
  readonly from: PrivateKeyAccount;
  readonly to?: Hex;
  readonly data?: Hex;
  readonly value?: bigint;
  readonly gas?: bigint;
  readonly type?: 'legacy' | 'eip2930' | 'eip1559' | 'eip7702';
  readonly accessList?: readonly { address: Hex; storageKeys: readonly Hex[] }[];
  readonly authorizationList?: readonly unknown[];
  readonly maxPriorityFeePerGas?: bigint;
  /** False for programs that use up all gas, of which an estimate would need many runs. */
  readonly isEstimated?: false;
}

export const alice = privateKeyToAccount(keccak256('0xa1'));
export const bob = privateKeyToAccount(keccak256('0xb0'));
/** Signs authorizations only. */
export const carol = privateKeyToAccount(keccak256('0xf4e5'));
const [a, b] = [alice.address, bob.address];
const stranger: Hex = `0x${'5e'.repeat(20)}`;
const DEADLINE = 2n ** 48n;
const ORDINARY_GAS = 6_000_000n;
const word = (value: bigint | number): Hex => numberToHex(value, { size: 32 });

/** The transactions, in the order in which they must be sent: of `alice`, except where the name says another sender. */
export async function knownTransactions(): Promise<readonly Known[]> {
  const all: Known[] = [];
  const add = (
    name: string,
    transaction: Omit<Known, 'name' | 'from'> & { from?: PrivateKeyAccount } = {},
  ): void => void all.push({ from: alice, gas: ORDINARY_GAS, ...transaction, name });
  const nonces = (): bigint => BigInt(all.filter(({ from }) => from === alice).length);
  const create = (name: string, data: Hex, value = 0n): Hex => {
    const address = getContractAddress({ from: a, nonce: nonces() });
    add(name, { data, value });
    return address;
  };
  const call =
    (contract: Hex, kind: string) =>
    (name: string, functionName: string, ...args: unknown[]) =>
      add(name, { to: contract, data: calling(kind, functionName, ...args) });

  // Tokens
  const token = create('create ERC-20', creating('PermitToken', 'Coin'));
  const other = create('create another ERC-20', creating('PermitToken', 'Other'));
  const erc20 = call(token, 'PermitToken');
  erc20('mint', 'mint', a, parseEther('1000'));
  erc20('mint more', 'mint', a, 1n);
  erc20('mint to another', 'mint', b, 500n);
  erc20('mint too much', 'mint', b, 2n ** 256n - 1n);
  erc20('mint to zero', 'mint', zeroAddress, 1n);
  erc20('transfer', 'transfer', b, 100n);
  erc20('transfer to a new holder', 'transfer', stranger, 100n);
  erc20('transfer nothing', 'transfer', b, 0n);
  erc20('transfer to oneself', 'transfer', a, 5n);
  erc20('transfer too much', 'transfer', b, 2n ** 200n);
  erc20('transfer to zero', 'transfer', zeroAddress, 1n);
  erc20('approve', 'approve', b, 50n);
  erc20('approve again', 'approve', b, 60n);
  erc20('revoke', 'approve', b, 0n);
  erc20('approve without limit', 'approve', b, 2n ** 256n - 1n);
  erc20('transferFrom without allowance', 'transferFrom', b, a, 1n);
  add('transferFrom by bob', {
    from: bob,
    to: token,
    data: calling('PermitToken', 'transferFrom', a, b, 7n),
  });
  add('transferFrom by bob, too much', {
    from: bob,
    to: token,
    data: calling('PermitToken', 'transferFrom', a, b, 2n ** 200n),
  });
  erc20('burn', 'burn', 3n);
  erc20('burn too much', 'burn', 2n ** 200n);
  add('value to a function that takes none', {
    to: token,
    value: 1n,
    data: calling('PermitToken', 'mint', a, 1n),
  });
  add('an unknown function', { to: token, data: '0xdeadbeef' });
  add('a short call', { to: token, data: '0xa9059cbb00' });
  add('no data', { to: token });
  const permit = async (value: bigint, nonce: bigint, deadline: bigint, verifyingContract = token) => {
    const signature = await alice.signTypedData({
      domain: { name: 'Coin', version: '1', chainId: CHAIN_ID, verifyingContract },
      types: {
        Permit: ['owner', 'spender', 'value', 'nonce', 'deadline'].map((name, at) => ({
          name,
          type: at < 2 ? 'address' : 'uint256',
        })),
      },
      primaryType: 'Permit',
      message: { owner: a, spender: b, value, nonce, deadline },
    });
    const [r, s] = [signature.slice(0, 66) as Hex, `0x${signature.slice(66, 130)}` as Hex];
    return [a, b, value, deadline, Number(`0x${signature.slice(130)}`), r, s];
  };
  const valid = await permit(9n, 0n, DEADLINE);
  erc20('permit', 'permit', ...valid);
  erc20('permit twice', 'permit', ...valid);
  erc20('permit that has expired', 'permit', ...(await permit(9n, 1n, 5n)));
  erc20('permit of another contract', 'permit', ...(await permit(9n, 1n, DEADLINE, other)));
  const transfers = [1n, 2n, 3n].map((amount) => calling('PermitToken', 'transfer', b, amount));
  erc20('multicall', 'multicall', transfers);
  erc20('multicall of which one fails', 'multicall', [
    ...transfers,
    calling('PermitToken', 'burn', 2n ** 200n),
  ]);
  erc20('multicall of nothing', 'multicall', []);
  const holder = create('create a holder', creating('Holder'));
  const noHolder = create('create a contract that holds nothing', creating('NoHolder'));
  const collectible = create('create ERC-721', creating('Collectible'));
  const erc721 = call(collectible, 'Collectible');
  erc721('mint a collectible', 'mint', a, 1n);
  erc721('mint it again', 'mint', a, 1n);
  erc721('mint to a holder', 'mint', holder, 2n);
  erc721('mint to a contract that holds nothing', 'mint', noHolder, 3n);
  erc721('transfer a collectible', 'transferFrom', a, b, 1n);
  erc721('transfer that of another', 'transferFrom', b, a, 1n);
  add('approve by bob', { from: bob, to: collectible, data: calling('Collectible', 'approve', a, 1n) });
  erc721('transfer what was approved', 'transferFrom', b, a, 1n);
  erc721('transfer safely to a holder', 'safeTransferFrom', a, holder, 1n);
  erc721('approve all', 'setApprovalForAll', b, true);
  erc721('approve all to zero', 'setApprovalForAll', zeroAddress, true);
  erc721('approve what does not exist', 'approve', b, 99n);
  erc721('burn', 'burn', 2n);
  erc721('burn what does not exist', 'burn', 99n);
  const items = create('create ERC-1155', creating('Items'));
  const erc1155 = call(items, 'Items');
  erc1155('mint items', 'mint', a, [1n, 2n, 3n], [10n, 20n, 30n]);
  erc1155('mint with arrays of other lengths', 'mint', a, [1n], [1n, 2n]);
  erc1155('mint items to a holder', 'mint', holder, [1n], [1n]);
  erc1155('mint items to a contract that holds nothing', 'mint', noHolder, [1n, 2n], [1n, 1n]);
  erc1155('transfer an item', 'safeTransferFrom', a, b, 1n, 4n, '0x');
  erc1155('transfer too many items', 'safeTransferFrom', a, b, 1n, 400n, '0x');
  erc1155('transfer a batch', 'safeBatchTransferFrom', a, b, [1n, 2n], [1n, 2n], '0x1234');
  erc1155('transfer the items of another', 'safeTransferFrom', b, a, 1n, 1n, '0x');
  erc1155('approve all items', 'setApprovalForAll', b, true);
  const wrapped = create('create a wrapped asset', creating('Wrapped'));
  add('deposit', { to: wrapped, value: parseEther('1'), data: calling('Wrapped', 'deposit') });
  add('deposit by a transfer', { to: wrapped, value: 5n });
  call(wrapped, 'Wrapped')('withdraw', 'withdraw', 7n);
  call(wrapped, 'Wrapped')('withdraw too much', 'withdraw', 2n ** 200n);
  const vault = create('create a vault', creating('Vault', token, 3));
  const erc4626 = call(vault, 'Vault');
  erc4626('deposit without allowance', 'deposit', 5n, a);
  erc20('approve the vault', 'approve', vault, 2n ** 256n - 1n);
  erc4626('deposit into the vault', 'deposit', 1_000n, a);
  erc4626('mint shares', 'mint', 5_000n, b);
  erc20('give to the vault', 'transfer', vault, 333n);
  erc4626('withdraw', 'withdraw', 100n, a, a);
  erc4626('withdraw too much', 'withdraw', 10n ** 9n, a, a);
  erc4626('redeem', 'redeem', 1_000n, b, a);
  erc4626('redeem the shares of another', 'redeem', 1n, a, b);

  // Uniswap V2
  const weth = create('create WETH9', creating('WETH9'));
  const factory = create("create Uniswap's factory", creating('Factory', a));
  const router = create("create Uniswap's router", creating('Router', factory, weth));
  const swap = call(router, 'Router');
  const factoryCall = call(factory, 'Factory');
  factoryCall('create a pair', 'createPair', token, other);
  factoryCall('create it again', 'createPair', other, token);
  factoryCall('create a pair of one token', 'createPair', token, token);
  call(other, 'PermitToken')('mint the other token', 'mint', a, parseEther('1000'));
  call(other, 'PermitToken')('approve the router for the other', 'approve', router, 2n ** 256n - 1n);
  swap(
    'add liquidity without allowance',
    'addLiquidity',
    token,
    other,
    10n ** 6n,
    10n ** 6n,
    0n,
    0n,
    a,
    DEADLINE,
  );
  erc20('approve the router', 'approve', router, 2n ** 256n - 1n);
  swap('add liquidity', 'addLiquidity', token, other, 10n ** 18n, 4n * 10n ** 18n, 0n, 0n, a, DEADLINE);
  swap(
    'add liquidity in another ratio',
    'addLiquidity',
    token,
    other,
    10n ** 18n,
    10n ** 18n,
    0n,
    0n,
    b,
    DEADLINE,
  );
  swap('add liquidity too late', 'addLiquidity', token, other, 1n, 1n, 0n, 0n, a, 1n);
  add('add liquidity of the native asset', {
    ...{ to: router, value: 10n ** 16n },
    data: calling('Router', 'addLiquidityETH', token, 10n ** 17n, 0n, 0n, a, DEADLINE),
  });
  swap('swap', 'swapExactTokensForTokens', 10n ** 9n, 1n, [token, other], a, DEADLINE);
  swap('swap back', 'swapTokensForExactTokens', 10n ** 9n, 10n ** 12n, [other, token], b, DEADLINE);
  swap('swap for too little', 'swapExactTokensForTokens', 10n, 10n ** 18n, [token, other], a, DEADLINE);
  swap('swap without a pair', 'swapExactTokensForTokens', 10n, 0n, [other, weth], a, DEADLINE);
  swap('swap for the native asset', 'swapExactTokensForETH', 10n ** 9n, 1n, [token, weth], a, DEADLINE);
  swap('swap over two pairs', 'swapExactTokensForTokens', 10n ** 9n, 1n, [other, token, weth], a, DEADLINE);
  add('swap of the native asset', {
    ...{ to: router, value: 10n ** 9n },
    data: calling('Router', 'swapExactETHForTokens', 1n, [weth, token], a, DEADLINE),
  });
  swap('a path of one token', 'swapExactTokensForTokens', 1n, 0n, [token], a, DEADLINE);

  // Proxies, clones and factories
  const counter = create('create a counter', creating('Counter'));
  const counterTwo = create('create its next version', creating('CounterTwo'));
  const proxy = create('create a proxy', creating('Proxy', counter, calling('Counter', 'increase', 5n)), 3n);
  create('create a proxy of an account', creating('Proxy', stranger, '0x'));
  create('create a proxy whose call fails', creating('Proxy', counter, '0xdeadbeef'));
  const proxied = call(proxy, 'CounterTwo');
  proxied('increase through the proxy', 'increase', 2n);
  proxied('write a short text', 'write', 'short');
  proxied('write a long text', 'write', 'long '.repeat(40));
  proxied('write an empty text', 'write', '');
  proxied('call what the version does not have', 'decrease');
  add('send value to the proxy', { to: proxy, value: 4n });
  proxied('upgrade', 'upgradeToAndCall', counterTwo, calling('CounterTwo', 'increase', 1n));
  proxied('decrease', 'decrease');
  proxied('upgrade to a contract that cannot', 'upgradeToAndCall', token, '0x');
  call(counter, 'Counter')('upgrade the implementation itself', 'upgradeToAndCall', counterTwo, '0x');
  call(counter, 'CounterTwo')('overflow below zero', 'increase', 2n ** 256n - 1n);
  const deployer = create('create a deployer', creating('Deployer'));
  const deploy = call(deployer, 'Deployer');
  deploy('clone', 'clone', counter);
  deploy('clone at an address', 'cloneAt', counter, word(1));
  deploy('clone there again', 'cloneAt', counter, word(1));
  deploy('CREATE2', 'deploy', 0n, word(2), creating('Holder'));
  deploy('CREATE2 again', 'deploy', 0n, word(2), creating('Holder'));
  deploy('CREATE2 of nothing', 'deploy', 0n, word(3), '0x');
  deploy('CREATE2 with more value than there is', 'deploy', 5n, word(4), creating('FailsToDeploy', ''));
  add('CREATE2 with value', {
    to: deployer,
    value: 5n,
    data: calling('Deployer', 'deploy', 5n, word(5), creating('Ephemeral', false)),
  });
  deploy('CREATE2 that fails', 'deploy', 0n, word(6), creating('FailsToDeploy', 'no'));
  deploy('CREATE that fails', 'deployAndForget', creating('FailsToDeploy', 'no'));
  deploy('CREATE of what destroys itself', 'deployAndForget', creating('Ephemeral', true));
  deploy('CREATE2 of what destroys itself', 'deploy', 0n, word(7), creating('Ephemeral', true));
  const ephemeral = create('create what can be destroyed', creating('Ephemeral', false), 9n);
  call(ephemeral, 'Ephemeral')('destroy it', 'destroy', stranger);
  call(ephemeral, 'Ephemeral')('destroy it again', 'destroy', ephemeral);
  create('create what destroys itself', creating('Ephemeral', true), 3n);
  create('a constructor that reverts', creating('FailsToDeploy', 'not today'));
  create('a constructor that panics', creating('FailsToDeploy', ''));
  create('create without code', '0x');
  create('code of 24,576 bytes', '0x6160005ff3');
  create('code of 24,577 bytes', '0x6160015ff3');
  create('code that begins with 0xef', '0x60ef5f5360015ff3');
  create('code that does not exist', '0xfe');
  create('49,152 bytes that create', concat(['0x00', pad('0x', { size: 49_151 })]));
  add('CREATE of 49,153 bytes', { to: create('create its creator', '0x600880600a5f395ff30061c0015f5ff000') });

  // Faults
  const faults = create('create faults', creating('Faults'));
  const fault = call(faults, 'Faults');
  fault('revert with a reason', 'reason', 'because');
  fault('revert with an empty reason', 'reason', '');
  fault('revert with a long reason', 'reason', 'because '.repeat(50));
  fault('revert with a custom error', 'custom', 7n);
  fault('revert with an error without arguments', 'empty');
  fault('revert with nothing', 'bare');
  fault('assert', 'asserts');
  fault('overflow', 'overflow', 2n ** 256n - 1n, 1n);
  fault('divide by zero', 'divide', 1n, 0n);
  fault('a member that does not exist', 'kind', 5n);
  fault('an index out of bounds', 'at', 3n);
  fault('pop of nothing', 'pop');
  fault('push', 'push', 3n);
  fault('pop', 'pop');
  fault('too much memory', 'allocate', 2n ** 64n);
  fault('expensive memory', 'allocate', 200_000n);
  fault('invalid', 'invalid');
  add('forever', { to: faults, gas: 200_000n, isEstimated: false, data: calling('Faults', 'forever') });
  fault('catch', 'catches', 'caught');
  fault('a call that fails within', 'tries', faults, calling('Faults', 'reason', 'inner'));
  fault('a call that panics within', 'tries', faults, calling('Faults', 'asserts'));
  fault('a call of an account within', 'tries', stranger, '0x1234');
  add('value passed on', { to: faults, value: 3n, data: calling('Faults', 'tries', stranger, '0x') });
  add('value passed on to who takes none', {
    to: faults,
    value: 3n,
    data: calling('Faults', 'tries', token, '0x'),
  });
  fault('a guard', 'guarded', '0x');
  fault('a guard that is entered twice', 'guarded', calling('Faults', 'guarded', '0x'));
  fault('a guarded count', 'guardedCount', 3n);
  fault('recursion', 'recurse', 20n);
  add('recursion without an end', {
    ...{ to: faults, gas: 1_000_000n, isEstimated: false },
    data: calling('Faults', 'recurse', 10_000n),
  });
  fault('fill', 'fill', 10n);
  fault('fill again', 'fill', 10n);
  fault('clear, with refunds', 'clear', 10n);
  fault('clear what is clear', 'clear', 10n);
  fault('write a slot three times', 'flip', 2n);
  const transient = call(create('create a transient guard', creating('Transient')), 'Transient');
  transient('a transient guard', 'guarded', '0x');
  transient('a transient guard that is entered twice', 'guarded', calling('Transient', 'guarded', '0x'));
  transient('count under a transient guard', 'guardedCount', 1n);

  // Limits of gas
  const increase = calling('Counter', 'increase', 1n);
  for (const gas of [21_000n, 22_000n, 25_000n, 30_000n, 45_000n, 60_000n]) {
    const least = gas < 21_510n ? 21_510n : gas;
    add(`increase with ${least} gas`, { to: counterTwo, data: increase, gas: least });
  }
  add('the least gas', { to: stranger, value: 1n, gas: 21_000n });
  add('the most gas', { to: stranger, value: 1n, gas: 16_777_216n });
  add('the floor of zeros', { to: stranger, data: pad('0x', { size: 1_000 }) });
  add('the floor of other bytes', {
    to: stranger,
    data: pad('0x01', { size: 1_000 }).replaceAll('00', '11') as Hex,
  });
  add('the floor for a contract', { to: counterTwo, data: concat([increase, pad('0x', { size: 3_000 })]) });
  add('the floor exactly', { to: stranger, data: pad('0x', { size: 100 }), gas: 22_000n });

  // Types
  add('a legacy transaction', { type: 'legacy', to: counterTwo, data: increase });
  add('an access list', {
    type: 'eip2930',
    to: counterTwo,
    data: increase,
    accessList: [{ address: counterTwo, storageKeys: [word(0)] }],
  });
  add('an access list of what is not used', {
    to: stranger,
    value: 1n,
    accessList: [
      { address: token, storageKeys: [word(0), word(1)] },
      { address: stranger, storageKeys: [] },
    ],
  });
  add('a tip', { to: stranger, value: 1n, maxPriorityFeePerGas: 3n });
  add('value to oneself', { to: a, value: 5n });
  add('nothing to nobody', { to: `0x${'5d'.repeat(20)}` });
  add('value to a contract that takes none', { to: holder, value: 1n });
  const authorize = async (
    from: PrivateKeyAccount,
    contractAddress: Hex,
    nonce: number,
    chainId = CHAIN_ID,
  ) => from.signAuthorization({ contractAddress, nonce, chainId });
  const bobsNonce = all.filter(({ from }) => from === bob).length;
  const delegate = async (
    name: string,
    nonce: number,
    contract: Hex,
    rest: Partial<Known> = {},
  ): Promise<void> =>
    add(name, {
      type: 'eip7702',
      to: b,
      authorizationList: [await authorize(bob, contract, nonce)],
      ...rest,
    });
  await delegate('delegate', bobsNonce, counter, { data: increase });
  add('call a delegated account', { to: b, data: increase });
  add('a contract calls a delegated account', { to: faults, data: calling('Faults', 'tries', b, increase) });
  await delegate('delegate with a wrong nonce', bobsNonce + 7, counterTwo);
  await delegate('delegate elsewhere', bobsNonce + 1, counterTwo, {
    data: calling('CounterTwo', 'decrease'),
  });
  await delegate('delegate, and revert', bobsNonce + 2, faults, { data: calling('Faults', 'bare') });
  await delegate('delegate no more', bobsNonce + 3, zeroAddress);
  // Anvil 1.7.1 refunds the authorization of an account that does not exist; EIP-7702 refunds only those that do.
  add('fund a new account', { to: carol.address, value: 1n });
  add('delegate on every chain', {
    type: 'eip7702',
    to: stranger,
    authorizationList: [await authorize(carol, counter, 0, 0)],
  });
  add('delegate on another chain', {
    type: 'eip7702',
    to: stranger,
    authorizationList: [await authorize(carol, counter, 1, 1)],
  });

  // Precompiled contracts, called by an account
  const random = randomOf('precompiled contracts');
  for (let count = 0; count < 24; count += 1) {
    const { address, input } = precompileInput(random);
    add(`precompile ${address}, ${count}`, {
      to: numberToHex(address, { size: 20 }),
      data: input,
      gas: 1_000_000n,
    });
  }
  return all;
}
