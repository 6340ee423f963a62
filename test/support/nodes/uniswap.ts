import { createRequire } from 'node:module';
import {
  type Abi,
  encodeAbiParameters,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  keccak256,
  toHex,
} from 'viem';
import type { Anvil } from '../anvil.ts';

const load = createRequire(import.meta.url);

interface Contract {
  readonly abi: Abi;
  readonly bytecode: Hex;
}

function published(name: string): Contract {
  const { abi, bytecode, evm } = load(name) as {
    abi: Abi;
    bytecode?: string;
    evm?: { bytecode: { object: string } };
  };
  const code = bytecode ?? evm?.bytecode.object ?? '';
  return { abi, bytecode: `0x${code.replace(/^0x/, '')}` };
}

/** An account for which anvil signs. */
const deployer = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
const addressOf = (nonce: number): Hex => getContractAddress({ from: deployer, nonce: BigInt(nonce) });
const [factory, weth, router] = [addressOf(0), addressOf(1), addressOf(2)];

/** The address of the router on a fresh anvil. */
export const ROUTER_ON_ANVIL = router;

/** The published contracts of Uniswap V2 on a fresh anvil. */
export interface Uniswap {
  /** Installs one of their ERC-20 tokens at an address. */
  installToken(token: string): Promise<void>;
  /** Sets the balance of an installed token. */
  giveToken(token: string, owner: string, rawAmount: bigint): Promise<void>;
  /** Makes a pool. `native` means the wrapped native asset. */
  makePool(one: [token: string, rawAmount: bigint], other: [token: string, rawAmount: bigint]): Promise<void>;
}

export async function deployUniswap(anvil: Anvil): Promise<Uniswap> {
  const theirFactory = published('@uniswap/v2-core/build/UniswapV2Factory.json');
  const theirPair = published('@uniswap/v2-core/build/UniswapV2Pair.json');
  const theirToken = published('@uniswap/v2-core/build/ERC20.json');
  const theirWeth = published('@uniswap/v2-periphery/build/WETH9.json');
  const theirRouter = published('@uniswap/v2-periphery/build/UniswapV2Router02.json');
  const deploy = ({ abi, bytecode }: Contract, ...args: unknown[]) =>
    act(undefined, encodeDeployData({ abi, bytecode, args }));

  async function act(to: string | undefined, data: Hex, value = 0n): Promise<void> {
    const call = { from: deployer, data, value: toHex(value), gas: toHex(8_000_000) };
    const hash = await anvil.ask('eth_sendTransaction', to === undefined ? call : { ...call, to });
    await anvil.ask('evm_mine');
    const receipt = (await anvil.ask('eth_getTransactionReceipt', hash)) as { status: string };
    if (receipt.status !== '0x1') throw new Error(`expected a success of ${data.slice(0, 10)}`);
  }
  const call = (to: string, { abi }: Contract, functionName: string, ...args: unknown[]) =>
    act(to, encodeFunctionData({ abi, functionName, args }));
  const token = addressOf(3);

  await deploy(theirFactory, deployer);
  await deploy(theirWeth);
  await deploy(theirRouter, factory, weth);
  await deploy(theirToken, 0n);
  const tokenCode = await anvil.ask('eth_getCode', token, 'latest');

  async function giveToken(at: string, owner: string, rawAmount: bigint): Promise<void> {
    // `balanceOf` is the second variable of the contract.
    const slot = encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [owner as Hex, 1n]);
    await anvil.ask('anvil_setStorageAt', at, keccak256(slot), toHex(rawAmount, { size: 32 }));
  }

  return {
    giveToken,
    installToken: async (at) => void (await anvil.ask('anvil_setCode', at, tokenCode)),
    async makePool(...sides) {
      const tokens = sides.map(([side]) => (side === 'native' ? weth : side));
      await call(factory, theirFactory, 'createPair', ...tokens);
      const data = encodeFunctionData({
        ...{ abi: theirFactory.abi, functionName: 'getPair', args: tokens },
      });
      const answer = (await anvil.ask('eth_call', { to: factory, data }, 'latest')) as Hex;
      const pair: Hex = `0x${answer.slice(-40)}`;
      for (const [side, rawAmount] of sides) {
        if (side !== 'native') await giveToken(side, pair, rawAmount);
        else {
          await act(weth, encodeFunctionData({ abi: theirWeth.abi, functionName: 'deposit' }), rawAmount);
          await call(weth, theirWeth, 'transfer', pair, rawAmount);
        }
      }
      await call(pair, theirPair, 'mint', deployer);
    },
  };
}
