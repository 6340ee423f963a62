import Sqlite from 'better-sqlite3';
import { encodeFunctionData, erc20Abi, erc4626Abi, type Hex, parseAbi } from 'viem';
import { expect, test } from 'vitest';
import { adjustableClock } from '../../../src/adapters/runtime.ts';
import { hexToBytes } from '../../../src/engine/crypto/encoding.ts';
import type { EvmChain } from '../../../src/ports/chains.ts';
import { pairAddress } from '../../../src/sandbox/simulated/chains/evm/contracts/addresses.ts';
import { borrowerOf } from '../../../src/sandbox/simulated/chains/evm/contracts/vaults.ts';
import { openSimulatedChains } from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { chainStoreSteps } from '../../../src/sandbox/simulated/chains/store-schema.ts';

// Until version 0.1.0, the sandbox's contracts had no bytecode, and their state was in tables of its own.

const caip2 = 'eip155:8453';
const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const eurc = '0x60a3e35cc302bfa44cb288bc5a4f316fdb1adb42';
const weth = '0x4200000000000000000000000000000000000006';
const distributor = '0x3ef3d8ba38ebe18db133cec108f4d14ce00dd9ae';
const faucet = '0x00000000000000000000000000000000000fa0ce';
const vault = `0x${'4a'.repeat(20)}` as const;
const alice = `0x${'11'.repeat(20)}` as const;
const bob = `0x${'22'.repeat(20)}` as const;
const seconds = 1_800_000_000;

/** The content of a store as the first version wrote it. */
function olderStore(): Buffer {
  const database = new Sqlite(':memory:');
  for (const step of chainStoreSteps) database.exec(step);
  database.pragma(`user_version = ${chainStoreSteps.length}`);
  const insert = (table: string, ...values: (string | number | null)[]) =>
    database.prepare(`insert into ${table} values (${values.map(() => '?').join(', ')})`).run(...values);
  const put = (contract: string, key: string, value: unknown) =>
    insert(
      'contract_state',
      ...[caip2, contract, key],
      JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? `${each}n` : each)),
    );
  insert('chains', caip2, 1_000, seconds * 1000, seconds * 1000, 1_000, 7, null);
  const pair = pairAddress(usdc, weth);
  // A million dollars of each.
  const reserves = [1_000_000_000_000n, 333_333_333_333_333_333_333n] as const;
  put(pair, 'pool', { tokens: [weth, usdc], reserves: [reserves[1], reserves[0]], seconds });
  put(vault, 'vault', {
    ...{ asset: usdc, offset: 0, apyBps: 1_000, feeBps: 0, feeKind: 'shares', admin: bob, isPaused: false },
    ...{ lent: 400n, claimableFees: 0n, paidSeconds: seconds, remainder: 0n },
  });
  put(distributor, 'rewards', [{ user: alice, token: eurc, amount: 30n }]);
  put(distributor, `claimed ${alice} ${eurc}`, { amount: 10n, seconds, root: `0x${'0'.repeat(64)}` });
  for (const [address, decimals, symbol] of [
    [usdc, 6, 'USDC'],
    [eurc, 6, 'EURC'],
    [weth, 18, 'WETH'],
    [vault, 6, 'vUSDC'],
  ] as const) {
    insert('tokens', caip2, address, decimals, symbol, null);
  }
  const held: [owner: string, asset: string, amount: bigint][] = [
    [alice, '', 10n ** 18n],
    [weth, '', reserves[1]],
    [alice, usdc, 700n],
    [pair, usdc, reserves[0]],
    [pair, weth, reserves[1]],
    [vault, usdc, 600n],
    [borrowerOf(vault), usdc, 1_400n],
    [alice, vault, 1_000n],
    [distributor, eurc, 20n],
    [alice, eurc, 10n],
  ];
  for (const [owner, asset, amount] of held) {
    insert('balances', caip2, owner, asset, String(amount));
    const sender = asset === vault ? `0x${'0'.repeat(40)}` : faucet;
    database
      .prepare(
        `insert into transfers (caip2, hash, sender, recipient, asset, amount, block_number, block_seconds)
         values (?, ?, ?, ?, ?, ?, 1000, ?)`,
      )
      .run(
        caip2,
        `0x${owner.slice(2, 34)}${asset.slice(2, 34)}`,
        sender,
        owner,
        asset,
        String(amount),
        seconds,
      );
  }
  insert('allowances', caip2, usdc, alice, bob, '50');
  const image = database.serialize();
  database.close();
  return image;
}

test('balances, allowances, pools, vaults and rewards of an older store are in the storage of contracts', async () => {
  const clock = adjustableClock();
  clock.set(seconds * 1000);
  const knownTokens = () => [
    { caip2, address: usdc, symbol: 'USDC', decimals: 6 },
    { caip2, address: eurc, symbol: 'EURC', decimals: 6 },
  ];
  const options = { file: ':memory:', image: olderStore(), clock, confirmAfterMs: 0, drawFault: undefined };
  const chains = openSimulatedChains({ ...options, knownTokens });
  const chain = chains.find(caip2) as EvmChain;
  expect(await chain.balances(alice, [null, usdc, vault, eurc])).toEqual([10n ** 18n, 700n, 1_000n, 10n]);
  const call = async (from: Hex, to: Hex, data: Hex) =>
    (await chain.simulate([{ from, to, value: 0n, data: hexToBytes(data.slice(2)) }])).succeeds;
  const spend = (amount: bigint) =>
    call(
      bob,
      usdc,
      encodeFunctionData({ abi: erc20Abi, functionName: 'transferFrom', args: [alice, bob, amount] }),
    );
  expect([await spend(50n), await spend(51n)]).toEqual([true, false]);
  const redeem = (shares: bigint) =>
    call(
      alice,
      vault,
      encodeFunctionData({ abi: erc4626Abi, functionName: 'redeem', args: [shares, alice, alice] }),
    );
  // 600 of the 1,000 are there, the others are lent.
  expect([await redeem(600n), await redeem(601n)]).toEqual([true, false]);
  const { rewards } = (await chains.earn.rewards(caip2, alice))!;
  expect(rewards).toMatchObject([{ rawCumulative: 30n, rawClaimed: 10n }]);
  const claim = encodeFunctionData({
    abi: parseAbi(['function claim(address[], address[], uint256[], bytes32[][])']),
    args: [[alice], [eurc], [30n], [rewards[0]!.proof as Hex[]]],
  });
  expect(await call(alice, distributor, claim)).toBe(true);
  for (const { given, minted, held } of await chains.books()) {
    expect(Object.values(held).reduce((sum, amount) => sum + amount, 0n)).toBe(given + minted);
  }
  // The wrapped native asset of all pools is backed, also of those that nobody has used.
  expect(await chain.balances(weth, [null])).toEqual([await chains.total(caip2, weth)]);
  await chains.close();
});

const solana = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const solanaUsdc = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const owner = '51T5ZJJd816Xi3M3yf81j9AAXsRWJBNTmKystogP5jw9';
const holder = 'Gh9ZwEmdLJ8DscKNTkTqPbNwLNNBjuSzaG9Vp2KGtKJr';

/** The content of a store as version 0.1.0 wrote it: accounts of tokens had no data. */
function olderSolanaStore(): Buffer {
  const database = new Sqlite(':memory:');
  const steps = chainStoreSteps.slice(0, -1);
  for (const step of steps) database.exec(step);
  database.pragma(`user_version = ${steps.length}`);
  database.exec(`
    insert into chains values ('${solana}', 1000, ${seconds * 1000}, ${seconds * 1000}, 1000, 1, null);
    insert into tokens values ('${solana}', '${solanaUsdc}', 6, 'USDC', null);
    insert into balances values ('${solana}', '${owner}', '', '5000000000'), ('${solana}', '${holder}', '', '2039280');
    insert into token_accounts values
      ('${solana}', '${holder}', '${owner}', '${solanaUsdc}', '700', '${owner}', '30');
  `);
  const image = database.serialize();
  database.close();
  return image;
}

test('token accounts and mints of an older store of Solana get their data', async () => {
  const clock = adjustableClock();
  clock.set(seconds * 1000);
  const options = { file: ':memory:', image: olderSolanaStore(), clock, confirmAfterMs: 0 };
  const chains = openSimulatedChains(options);
  const ask = async (method: string, ...params: unknown[]) => {
    const caller = { signal: new AbortController().signal, isLate: () => false };
    return chains.rpc(solana, { method, params }, caller);
  };
  expect(await ask('getAccountInfo', holder, { encoding: 'jsonParsed' })).toMatchObject({
    result: {
      value: {
        lamports: 2_039_280,
        data: {
          parsed: {
            info: {
              ...{ owner, mint: solanaUsdc, state: 'initialized', delegate: owner },
              ...{ tokenAmount: { amount: '700' }, delegatedAmount: { amount: '30' } },
            },
          },
        },
      },
    },
  });
  expect(await ask('getTokenSupply', solanaUsdc)).toMatchObject({ result: { value: { amount: '700' } } });
  await chains.fund(solana, { address: owner, tokenAddress: solanaUsdc, rawAmount: 5n });
  expect(await ask('getTokenSupply', solanaUsdc)).toMatchObject({ result: { value: { amount: '705' } } });
  await chains.close();
});
