import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import {
  type Abi,
  decodeFunctionResult,
  encodeDeployData,
  encodeFunctionData,
  erc20Abi,
  getContractAddress,
  type Hex,
} from 'viem';
import { expect, test } from 'vitest';
import { type SimulatedEvm, simulatedEvm } from './simulated-evm.ts';

// Uniswap's own bytecode beside the sandbox's router and factory, on the same chain with the same tokens.

interface Contract {
  readonly abi: Abi;
  readonly bytecode: Hex;
}

function published(path: string): Contract {
  const file = new URL(`../../node_modules/@uniswap/${path}.json`, import.meta.url);
  const { abi, bytecode } = JSON.parse(readFileSync(file, 'utf8')) as { abi: Abi; bytecode: string };
  return { abi, bytecode: `0x${bytecode.replace(/^0x/, '')}` };
}

const UniswapV2Factory = published('v2-core/build/UniswapV2Factory');
const UniswapV2Router02 = published('v2-periphery/build/UniswapV2Router02');
const pairAbi = published('v2-core/build/IUniswapV2Pair').abi;
const { Token } = JSON.parse(
  readFileSync(new URL('../../vectors/contracts/golden/vault.json', import.meta.url), 'utf8'),
) as { Token: Contract };

const weth: Hex = '0x4200000000000000000000000000000000000006';
const ourRouter: Hex = '0x7a250d5630b4cf539739df2c5dacb4c659f2488d';
const ourFactory: Hex = '0x5c69bee701ef814a2b6a3edd4b1652cb9cc5aa6f';
const trader: Hex = `0x${'11'.repeat(20)}`;
const FAR = 2n ** 32n;

/** Deploys a contract. */
async function deploy(evm: SimulatedEvm, from: Hex, contract: Contract, args: unknown[]): Promise<Hex> {
  const data = encodeDeployData({ ...contract, args } as never);
  const address = getContractAddress({ from, nonce: BigInt(evm.state.accounts.nonce(from, '')) });
  const { revert } = await evm.call({ from, to: null, data, seconds: 1 });
  expect(revert).toBeUndefined();
  return address.toLowerCase() as Hex;
}

/** One of the two exchanges, with a pair of two tokens of its own. */
interface Market {
  readonly router: Hex;
  readonly factory: Hex;
  readonly tokens: readonly [Hex, Hex];
}

async function openMarket(
  evm: SimulatedEvm,
  deployer: Hex,
  exchange: { router: Hex; factory: Hex },
): Promise<Market> {
  const made: Hex[] = [];
  for (let index = 0; index < 2; index += 1) made.push(await deploy(evm, deployer, Token, [18]));
  for (const to of made) {
    for (const data of [
      encodeFunctionData({ abi: Token.abi, functionName: 'mint', args: [trader, 10n ** 30n] }),
      encodeFunctionData({
        abi: erc20Abi,
        functionName: 'approve',
        args: [exchange.router, 2n ** 256n - 1n],
      }),
    ]) {
      await evm.call({ from: trader, to, data, seconds: 1 });
    }
  }
  const [one, other] = made.sort() as [Hex, Hex];
  return { ...exchange, tokens: [one, other] };
}

async function read(
  evm: SimulatedEvm,
  to: Hex,
  abi: Abi,
  functionName: string,
  ...args: unknown[]
): Promise<unknown> {
  const answer = await evm.read(to, encodeFunctionData({ abi, functionName, args } as never), 10);
  if (answer === undefined) return undefined;
  return decodeFunctionResult({
    abi,
    functionName,
    data: `0x${Buffer.from(answer).toString('hex')}`,
  } as never);
}

/** What the trader has of the tokens and of the pair, and the state of the pair. */
async function positionIn(evm: SimulatedEvm, { factory, tokens }: Market) {
  const balanceOf = (token: Hex) => read(evm, token, erc20Abi as Abi, 'balanceOf', trader);
  const held = await Promise.all(tokens.map(balanceOf));
  const pair = (await read(evm, factory, UniswapV2Factory.abi, 'getPair', ...tokens)) as Hex;
  if (BigInt(pair) === 0n) return { held };
  return {
    held,
    shares: await balanceOf(pair),
    reserves: await read(evm, pair, pairAbi, 'getReserves'),
    supply: await read(evm, pair, pairAbi, 'totalSupply'),
    prices: [
      await read(evm, pair, pairAbi, 'price0CumulativeLast'),
      await read(evm, pair, pairAbi, 'price1CumulativeLast'),
    ],
  };
}

type Step =
  | { readonly kind: 'add'; readonly amounts: readonly [bigint, bigint]; readonly least: bigint }
  | { readonly kind: 'remove'; readonly part: bigint; readonly least: bigint }
  | { readonly kind: 'swap' | 'swap for'; readonly amount: bigint; readonly isReversed: boolean };

async function take(
  evm: SimulatedEvm,
  market: Market,
  step: Step,
  seconds: number,
): Promise<string | undefined> {
  const { router, factory, tokens } = market;
  const call = async (functionName: string, ...args: unknown[]) =>
    (
      await evm.call({
        ...{ from: trader, to: router, seconds },
        data: encodeFunctionData({ abi: UniswapV2Router02.abi, functionName, args } as never),
      })
    ).revert;
  if (step.kind === 'add') {
    return call('addLiquidity', ...tokens, ...step.amounts, step.least, step.least, trader, FAR);
  }
  if (step.kind === 'remove') {
    const pair = (await read(evm, factory, UniswapV2Factory.abi, 'getPair', ...tokens)) as Hex;
    if (BigInt(pair) === 0n) return undefined;
    const data = encodeFunctionData({
      abi: erc20Abi,
      functionName: 'approve',
      args: [router, 2n ** 256n - 1n],
    });
    await evm.call({ from: trader, to: pair, data, seconds });
    const shares = (await read(evm, pair, erc20Abi as Abi, 'balanceOf', trader)) as bigint;
    return call(
      'removeLiquidity',
      ...tokens,
      (shares * step.part) / 100n,
      step.least,
      step.least,
      trader,
      FAR,
    );
  }
  const path = step.isReversed ? tokens.toReversed() : tokens;
  return step.kind === 'swap'
    ? call('swapExactTokensForTokens', step.amount, 0n, path, trader, FAR)
    : call('swapTokensForExactTokens', step.amount, 10n ** 30n, path, trader, FAR);
}

test('pairs that users make do what the pairs of Uniswap V2 do', async () => {
  const amount = fc.oneof(fc.bigInt(0n, 5_000n), fc.bigInt(10n ** 15n, 10n ** 27n));
  const least = fc.oneof(fc.constant(0n), amount);
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ kind: fc.constant('add' as const), amounts: fc.tuple(amount, amount), least }),
    fc.record({ kind: fc.constant('remove' as const), part: fc.bigInt(0n, 101n), least }),
    fc.record({
      kind: fc.constantFrom('swap' as const, 'swap for' as const),
      amount,
      isReversed: fc.boolean(),
    }),
  );
  const first = fc.record({
    ...{ kind: fc.constant('add' as const), least: fc.constant(0n) },
    amounts: fc.tuple(fc.bigInt(10n ** 18n, 10n ** 27n), fc.bigInt(10n ** 18n, 10n ** 27n)),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      first,
      fc.array(step, { maxLength: 8 }),
      async (isOpened, opening, others) => {
        using evm = simulatedEvm([]);
        const [here, there]: [Hex, Hex] = [`0x${'22'.repeat(20)}`, `0x${'22'.repeat(19)}23`];
        const factory = await deploy(evm, there, UniswapV2Factory, [there]);
        const router = await deploy(evm, there, UniswapV2Router02, [factory, weth]);
        const ours = await openMarket(evm, here, { router: ourRouter, factory: ourFactory });
        const theirs = await openMarket(evm, there, { router, factory });
        const steps: Step[] = isOpened ? [opening, ...others] : others;
        for (const [index, each] of steps.entries()) {
          const outcomes = [];
          for (const market of [ours, theirs]) {
            const revert = await take(evm, market, each, 2 + index);
            outcomes.push({ isReverted: revert !== undefined, ...(await positionIn(evm, market)) });
          }
          expect({ index, ...outcomes[0] }).toEqual({ index, ...outcomes[1] });
        }
      },
    ),
    { numRuns: process.env.TEST_LONG === undefined ? 15 : 300 },
  );
});
