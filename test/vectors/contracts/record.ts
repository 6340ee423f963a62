import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Abi, decodeErrorResult, encodeDeployData, encodeFunctionData, erc20Abi, type Hex } from 'viem';
import { startAnvil } from '../../support/anvil.ts';

/*
 * Records what the published contracts do on anvil, for tests of the simulated ones:
 *
 *   npm install --prefix /tmp/judges @uniswap/v2-core@1.0.1 @uniswap/v2-periphery@1.1.0-beta.0 \
 *     @uniswap/v2-sdk@4.21.4 @uniswap/sdk-core@7.19.4 @openzeppelin/contracts@5.7.0 solc@0.8.37
 *   node test/vectors/contracts/record.ts /tmp/judges
 *
 * Writes into `golden/`: `vault.json`, `known.json` and `account.json` (compiled by solc), `vault-calls.json`, `swap-calls.json`, `swap-amounts.json`.
 */

const folder = import.meta.dirname;
const load = createRequire(join(process.argv[2] ?? '/tmp/judges', 'package.json'));

/** The calls to execute in order, each in a block of its own. */
interface RecordedCall {
  readonly from: string;
  readonly to: string;
  readonly value: string;
  readonly data: string;
  readonly seconds: number;
  /** Undefined when it succeeds; '' when the contract gives no reason. */
  readonly reverts?: string;
  /** Balances after the call: of the native asset first, then of the tokens, for each account. */
  readonly balances: Readonly<Record<string, readonly string[]>>;
  /** The data that these read-only calls return after the call; empty when they revert. */
  readonly reads: readonly { readonly to: string; readonly data: string; readonly returns: string }[];
}

export interface Recording {
  readonly source: string;
  readonly tokens: readonly string[];
  /** What the accounts hold before the first call. */
  readonly balances: RecordedCall['balances'];
  readonly calls: readonly RecordedCall[];
}

const people = [1, 2, 3].map((fill) => `0x${String(fill).repeat(40)}` as Hex);
const [alice, bob, eve] = people as [Hex, Hex, Hex];
const usdc: Hex = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const eurc: Hex = '0x60a3e35cc302bfa44cb288bc5a4f316fdb1adb42';
const weth: Hex = '0x4200000000000000000000000000000000000006';
const router: Hex = '0x7a250d5630b4cf539739df2c5dacb4c659f2488d';
const factory: Hex = '0x5c69bee701ef814a2b6a3edd4b1652cb9cc5aa6f';
const plain: Hex = `0x${'4a'.repeat(20)}`;
const wide: Hex = `0x${'4b'.repeat(20)}`;
const startSeconds = 1_800_000_000;

interface Contract {
  readonly abi: Abi;
  readonly bytecode: Hex;
}

async function main(): Promise<void> {
  const { Token, Vault, FeeVault, Distributor } = compile('vault.sol');
  const source = 'vault.sol, @openzeppelin/contracts 5.7.0, solc 0.8.37';
  write('vault.json', { source, Token, Vault, FeeVault, Distributor });
  const ofKnown = 'known.sol, @openzeppelin/contracts 5.7.0, solc 0.8.37';
  write('known.json', { source: ofKnown, ...compile('known.sol') });
  write('account.json', { source: 'account.sol, solc 0.8.37', ...compile('account.sol') });
  errors = Vault!.abi;
  write('swap-amounts.json', swapAmounts());
  write('vault-calls.json', await recordVault(Token!, Vault!));
  write('swap-calls.json', await recordSwaps(Token!));
}

function compile(file: string): Record<string, Contract> {
  const solc = load('solc') as { compile(input: string, callbacks: object): string };
  const input = {
    language: 'Solidity',
    sources: { [file]: { content: readFileSync(join(folder, file), 'utf8') } },
    settings: {
      optimizer: { enabled: true, runs: 1 },
      evmVersion: 'prague',
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
    },
  };
  const find = (path: string) => ({ contents: readFileSync(load.resolve(path), 'utf8') });
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: find })) as {
    errors?: { severity: string; formattedMessage: string }[];
    contracts: Record<string, Record<string, { abi: Abi; evm: { bytecode: { object: string } } }>>;
  };
  const faults = (output.errors ?? []).filter(({ severity }) => severity === 'error');
  if (faults.length > 0) throw new Error(faults.map(({ formattedMessage }) => formattedMessage).join('\n'));
  return Object.fromEntries(
    Object.entries(output.contracts[file]!).map(([name, { abi, evm }]) => [
      name,
      { abi: abi.filter(({ type }) => type !== 'event'), bytecode: `0x${evm.bytecode.object}` as Hex },
    ]),
  );
}

/** Inputs and outputs of `@uniswap/v2-sdk` for reserves of every size. */
function swapAmounts() {
  const { Pair } = load('@uniswap/v2-sdk');
  const { CurrencyAmount, Token } = load('@uniswap/sdk-core');
  const [one, other] = [new Token(8453, usdc, 6), new Token(8453, eurc, 6)];
  const random = dice(1);
  const cases = Array.from({ length: 200 }, () => {
    const reserves = [random.size(100), random.size(100)].map((reserve) => reserve + 1000n);
    const pair = new Pair(
      CurrencyAmount.fromRawAmount(one, String(reserves[0])),
      CurrencyAmount.fromRawAmount(other, String(reserves[1])),
    );
    const amount = random.size(100) + 1n;
    const output = attempt(() => pair.getOutputAmount(CurrencyAmount.fromRawAmount(one, String(amount)))[0]);
    const input = attempt(() => pair.getInputAmount(CurrencyAmount.fromRawAmount(other, String(amount)))[0]);
    return {
      reserves: reserves.map(String),
      amount: String(amount),
      output: output?.quotient.toString() ?? null,
      input: input?.quotient.toString() ?? null,
    };
  });
  return { source: '@uniswap/v2-sdk 4.21.4', cases };
}

async function recordVault(
  token: Contract,
  vault: Contract,
): Promise<Recording & { readonly offsets: unknown }> {
  await using anvil = await startRecorder([usdc, plain, wide]);
  await anvil.install(usdc, { ...token, args: [6] });
  await anvil.install(plain, { ...vault, args: [usdc, 0] });
  await anvil.install(wide, { ...vault, args: [usdc, 12] });
  for (const who of people) await anvil.act(who, usdc, mint(token.abi, who, 10n ** 12n));
  const random = dice(2);
  const callOf = (name: string, ...args: unknown[]) => encode(vault.abi, name, ...args);
  const read = (to: Hex, name: string, ...args: unknown[]) => ({ to, data: callOf(name, ...args) });
  await anvil.begin();
  for (let step = 0; step < 60; step += 1) {
    const to = random.of([plain, wide]);
    const who = random.of(people);
    const amount = random.of([0n, 1n, random.size(20), random.size(40), 10n ** 6n]);
    const shares = to === wide ? amount * 10n ** BigInt(random.below(13)) : amount;
    const kind = random.below(9);
    // The allowance first: of the asset to the vault, of shares to another account.
    if (kind < 4) await anvil.call(who, usdc, approve(to, random.of([amount, 10n ** 30n])), []);
    const call =
      kind < 2
        ? callOf('deposit', amount, random.of([who, bob]))
        : kind < 4
          ? callOf('mint', shares, random.of([who, eve]))
          : kind === 4
            ? callOf('withdraw', amount, random.of([who, alice]), who)
            : kind === 5
              ? callOf('redeem', shares, who, who)
              : kind === 6
                ? callOf('withdraw', amount, who, random.of(people))
                : approve(bob, shares);
    const all = [
      ...['asset', 'totalAssets', 'totalSupply', 'decimals'].map((name) => read(to, name)),
      ...[
        'convertToShares',
        'convertToAssets',
        'previewDeposit',
        'previewMint',
        'previewWithdraw',
        'previewRedeem',
      ].map((name) => read(to, name, shares)),
      ...['maxDeposit', 'maxMint', 'maxWithdraw', 'maxRedeem'].map((name) => read(to, name, who)),
    ];
    const reads = Array.from({ length: 5 }, () => random.of(all));
    // A donation raises the price of a share, as interest does.
    if (kind === 8) await anvil.call(who, usdc, transfer(to, amount), reads);
    else await anvil.call(who, to, call, reads);
  }
  const source = 'OpenZeppelin ERC4626 5.7.0 on anvil 1.7.1; random calls by record.ts';
  return { source, offsets: { [plain]: 0, [wide]: 12 }, ...anvil.recording() };
}

async function recordSwaps(token: Contract): Promise<Recording> {
  const artefact = (name: string) => {
    const { abi, bytecode, evm } = load(name) as {
      abi: Abi;
      bytecode?: string;
      evm: { bytecode: { object: string } };
    };
    return { abi, bytecode: `0x${(bytecode ?? evm.bytecode.object).replace(/^0x/, '')}` as Hex };
  };
  const theirFactory = artefact('@uniswap/v2-core/build/UniswapV2Factory.json');
  const theirPair = artefact('@uniswap/v2-core/build/UniswapV2Pair.json');
  const theirRouter = artefact('@uniswap/v2-periphery/build/UniswapV2Router02.json');
  await using anvil = await startRecorder([usdc, eurc, weth]);
  await anvil.install(usdc, { ...token, args: [6] });
  await anvil.install(eurc, { ...token, args: [6] });
  await anvil.install(weth, { ...artefact('@uniswap/v2-periphery/build/WETH9.json'), args: [] });
  await anvil.install(factory, { ...theirFactory, args: [alice] });
  await anvil.install(router, { ...theirRouter, args: [factory, weth] });
  const [maker] = ['0x7777777777777777777777777777777777777777'] as [Hex];
  await anvil.rich(maker);
  const pairOf = async (one: Hex, other: Hex): Promise<Hex> =>
    `0x${(await anvil.read(factory, encode(theirFactory.abi, 'getPair', one, other))).slice(-40)}`;
  for (const [one, other] of [
    [usdc, eurc],
    [usdc, weth],
    [eurc, weth],
  ] as const) {
    await anvil.act(maker, factory, encode(theirFactory.abi, 'createPair', one, other));
    const pair = await pairOf(one, other);
    for (const asset of [one, other]) {
      if (asset === weth) {
        await anvil.act(maker, weth, '0xd0e30db0', 333_333_333_333_333_333_333n);
        await anvil.act(maker, weth, transfer(pair, 333_333_333_333_333_333_333n));
      } else {
        // $1,000,000 at $1 and $1.10.
        await anvil.act(maker, asset, mint(token.abi, pair, asset === usdc ? 10n ** 12n : 909_090_909_090n));
      }
    }
    await anvil.act(maker, pair, encode(theirPair.abi, 'mint', maker));
  }
  for (const who of people) {
    for (const asset of [usdc, eurc]) await anvil.act(who, asset, mint(token.abi, who, 10n ** 12n));
  }
  const random = dice(3);
  const pairs = [await pairOf(usdc, eurc), await pairOf(usdc, weth), await pairOf(eurc, weth)];
  await anvil.begin();
  for (let step = 0; step < 55; step += 1) {
    const { who, to, data, value, approval } = randomSwap(random, {
      abi: theirRouter.abi,
      pairs,
      seconds: anvil.seconds(),
    });
    if (approval !== undefined) await anvil.call(who, approval.token, approve(router, approval.amount), []);
    const amount = random.size(60);
    const path = random.of([[usdc, weth], [eurc, usdc, weth], [weth, eurc], [usdc]]);
    const all = [
      ...pairs.map((pair) => ({ to: pair, data: encode(theirPair.abi, 'getReserves') })),
      { to: router, data: encode(theirRouter.abi, 'getAmountsOut', amount, path) },
      { to: router, data: encode(theirRouter.abi, 'getAmountsIn', amount, path) },
      { to: factory, data: encode(theirFactory.abi, 'getPair', usdc, eve) },
    ];
    await anvil.call(who, to, data, [random.of(all), random.of(all), random.of(all)], value);
  }
  return {
    source: '@uniswap/v2-core 1.0.1, v2-periphery 1.1.0-beta.0 on anvil 1.7.1; random calls by record.ts',
    ...anvil.recording(),
  };
}

function randomSwap(
  random: Dice,
  { abi, pairs, seconds }: { abi: Abi; pairs: readonly Hex[]; seconds: number },
) {
  const who = random.of(people);
  const kind = random.below(8);
  // Tokens accept no native asset.
  const receiver = random.of(kind === 3 || kind === 4 ? [who, bob] : [who, who, bob, usdc]);
  const deadline = BigInt(seconds + random.of([1200, 1200, 1200, 1200, -30]));
  const usd = random.size(36);
  const ether = random.size(62);
  const token = random.of([usdc, eurc]);
  const path = random.of([
    [token, weth],
    [token, weth],
    [token, token === usdc ? eurc : usdc, weth],
  ]);
  const back = path.toReversed();
  const most = random.of([10n ** 30n, 10n ** 30n, usd]);
  const least = random.of([0n, 0n, usd, ether]);
  const call = (name: string, ...args: unknown[]) => encode(abi, name, ...args, receiver, deadline);
  const allow = (amount: bigint) => ({ token: path[0]!, amount });
  const common = {
    who,
    to: router as Hex,
    value: 0n,
    approval: undefined as ReturnType<typeof allow> | undefined,
  };
  if (kind === 0)
    return {
      ...common,
      approval: allow(usd),
      data: call('swapExactTokensForTokens', usd, least, path.slice(0, 2)),
    };
  if (kind === 1)
    return { ...common, approval: allow(most), data: call('swapTokensForExactTokens', ether, most, path) };
  if (kind === 2)
    return { ...common, value: ether, data: call('swapExactETHForTokens', least, random.of([back, path])) };
  if (kind === 3)
    return { ...common, approval: allow(10n ** 30n), data: call('swapTokensForExactETH', ether, most, path) };
  if (kind === 4)
    return {
      ...common,
      approval: allow(random.of([usd, usd / 2n])),
      data: call('swapExactTokensForETH', usd, least, path),
    };
  if (kind === 5) return { ...common, value: ether, data: call('swapETHForExactTokens', usd, back) };
  // A gift to a pair becomes part of its reserves with the next swap.
  if (kind === 6) return { ...common, who, to: token, data: transfer(random.of(pairs), usd) };
  return {
    ...common,
    to: weth,
    ...random.of([
      { data: '0xd0e30db0' as Hex, value: ether },
      { data: withdraw(ether), value: 0n },
    ]),
  };
}

function withdraw(amount: bigint): Hex {
  return `0x2e1a7d4d${amount.toString(16).padStart(64, '0')}`;
}

function encode(abi: Abi, functionName: string, ...args: unknown[]): Hex {
  return encodeFunctionData({ abi, functionName, args } as never);
}

function mint(abi: Abi, to: Hex, amount: bigint): Hex {
  return encode(abi, 'mint', to, amount);
}

function approve(spender: Hex, amount: bigint): Hex {
  return encode(erc20Abi, 'approve', spender, amount);
}

function transfer(to: Hex, amount: bigint): Hex {
  return encode(erc20Abi, 'transfer', to, amount);
}

async function startRecorder(tokens: readonly Hex[]) {
  const anvil = await startAnvil(8453);
  const calls: RecordedCall[] = [];
  let before: RecordedCall['balances'] = {};
  let seconds = startSeconds;
  const read = async (to: Hex, data: Hex): Promise<string> => {
    try {
      return (await anvil.ask('eth_call', { to, data }, 'latest')) as string;
    } catch {
      return '0x';
    }
  };
  const rich = async (who: Hex) => {
    await anvil.ask('anvil_impersonateAccount', who);
    await anvil.ask('anvil_setBalance', who, hex(10n ** 24n));
  };
  for (const who of people) await rich(who);
  const balances = async () => {
    const all: Record<string, string[]> = {};
    for (const who of people) {
      all[who] = [String(BigInt((await anvil.ask('eth_getBalance', who, 'latest')) as string))];
      for (const token of tokens) {
        const word = await read(token, encode(erc20Abi, 'balanceOf', who));
        all[who].push(String(BigInt(word)));
      }
    }
    return all;
  };
  /** Sends at the next second, without a fee. */
  const act = async (from: Hex, to: Hex, data: Hex, value = 0n): Promise<void> => {
    seconds += 1;
    await anvil.ask('evm_setNextBlockTimestamp', seconds);
    await anvil.ask('anvil_setNextBlockBaseFeePerGas', '0x0');
    const call = { from, to, data, value: hex(value), gas: hex(3_000_000n), gasPrice: '0x0' };
    const hash = await anvil.ask('eth_sendTransaction', call);
    await anvil.ask('evm_mine');
    const receipt = (await anvil.ask('eth_getTransactionReceipt', hash)) as { status: string };
    if (receipt.status !== '0x1') throw new Error(`expected the call to succeed: ${to} ${data}`);
  };
  return {
    act,
    rich,
    read,
    seconds: () => seconds,
    /** Puts a contract at an address of our choice: its constructor runs elsewhere. */
    async install(address: Hex, { abi, bytecode, args }: Contract & { args: unknown[] }) {
      const data = encodeDeployData({ abi, bytecode, args } as never);
      await anvil.ask('anvil_setNextBlockBaseFeePerGas', '0x0');
      const hash = await anvil.ask('eth_sendTransaction', {
        from: alice,
        data,
        gas: hex(10_000_000n),
        gasPrice: '0x0',
      });
      await anvil.ask('evm_mine');
      const { contractAddress } = (await anvil.ask('eth_getTransactionReceipt', hash)) as {
        contractAddress: Hex;
      };
      await anvil.ask('anvil_setCode', address, await anvil.ask('eth_getCode', contractAddress, 'latest'));
    },
    async begin() {
      before = await balances();
    },
    async call(from: Hex, to: Hex, data: Hex, reads: readonly { to: Hex; data: Hex }[], value = 0n) {
      const reverts = await revertOf(anvil.url, { from, to, data, value: hex(value) }, seconds + 1);
      if (reverts === undefined) await act(from, to, data, value);
      else {
        seconds += 1;
        await anvil.ask('evm_setNextBlockTimestamp', seconds);
        await anvil.ask('evm_mine');
      }
      const returned = await Promise.all(
        reads.map(async (each) => ({ ...each, returns: await read(each.to, each.data) })),
      );
      const call = {
        from,
        to,
        value: String(value),
        data,
        seconds,
        ...(reverts === undefined ? {} : { reverts }),
      };
      calls.push({ ...call, balances: await balances(), reads: returned });
    },
    recording: () => ({ tokens, balances: before, calls }),
    [Symbol.asyncDispose]: () => anvil[Symbol.asyncDispose](),
  };
}

/** The reason of `require`, or the name of the contract's error; '' for neither. Undefined when the call succeeds. */
async function revertOf(url: string, call: object, seconds: number): Promise<string | undefined> {
  const params = [call, 'latest', null, { time: hex(BigInt(seconds)) }];
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_call', params });
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  const { error } = (await response.json()) as { error?: { message: string; data?: Hex } };
  if (error === undefined) return undefined;
  if (error.data === undefined || error.data === '0x') return '';
  const { errorName, args } = decodeErrorResult({ abi: errors, data: error.data });
  return errorName === 'Error' ? String(args?.[0]) : errorName;
}

let errors: Abi = [];

interface Dice {
  below(limit: number): number;
  of<T>(choices: readonly T[]): T;
  /** A number of up to `bits` bits, each length as likely as the others. */
  size(bits: number): bigint;
}

// A linear congruential generator: the same calls in every run.
function dice(seed: number): Dice {
  let state = BigInt(seed);
  const next = (): bigint => {
    state = (state * 6364136223846793005n + 1442695040888963407n) % 2n ** 64n;
    return state >> 33n;
  };
  const below = (limit: number): number => Number(next() % BigInt(limit));
  return {
    below,
    of: (choices) => choices[below(choices.length)]!,
    size(bits) {
      const length = BigInt(below(bits));
      return ((next() << 62n) ^ (next() << 31n) ^ next()) % 2n ** length;
    },
  };
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function hex(value: bigint): string {
  return `0x${value.toString(16)}`;
}

function write(name: string, value: unknown): void {
  const lines = JSON.stringify(value)
    .replaceAll('{"from":', '\n{"from":')
    .replaceAll('{"reserves":', '\n{"reserves":');
  writeFileSync(join(folder, 'golden', name), `${lines}\n`);
}

await main();
