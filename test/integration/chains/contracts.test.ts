import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import {
  type Abi,
  getAddress as checksummed,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  keccak256,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adjustableClock } from '../../../src/adapters/runtime.ts';
import { bytesTo0xHex, hexToBytes } from '../../../src/engine/crypto/encoding.ts';
import type { EvmChain } from '../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';

// The same signed transactions on a simulated chain and on anvil: status, gas, code, storage and answers are equal.

const CHAIN_ID = 31_337;
const GAS_PRICE = 2_000_000_000n;
const runs = process.env.TEST_LONG === undefined ? 1 : 50;

interface Contract {
  readonly abi: Abi;
  readonly bytecode: Hex;
}

const { Token, Vault } = JSON.parse(
  readFileSync(new URL('../../vectors/contracts/golden/vault.json', import.meta.url), 'utf8'),
) as { Token: Contract; Vault: Contract };

/** What a transaction did. */
interface Outcome {
  readonly isReverted: boolean;
  readonly gasUsed: bigint;
}

let anvil: Anvil;
let chains: SimulatedChains;
let chain: EvmChain;
let accounts = 0;

beforeAll(async () => {
  anvil = await startAnvil(CHAIN_ID, 'osaka');
  const clock = adjustableClock();
  chains = openSimulatedChains({ file: ':memory:', clock, confirmAfterMs: 0, drawFault: undefined });
  chain = chains.find(`eip155:${CHAIN_ID}`) as EvmChain;
});

afterAll(async () => {
  await chains.close();
  await anvil[Symbol.asyncDispose]();
});

/** An account with funds on both chains, which sends transactions to both. */
async function makeSender() {
  accounts += 1;
  const account = privateKeyToAccount(`0x7${accounts.toString(16).padStart(63, '0')}`);
  const { address } = account;
  await anvil.ask('anvil_setBalance', address, `0x${(10n ** 20n).toString(16)}`);
  await chains.fund(chain.caip2, { address, tokenAddress: null, rawAmount: 10n ** 20n });
  let nonce = 0;
  const sign = (transaction: { to?: Hex; data?: Hex; value?: bigint; gas?: bigint }) => {
    nonce += 1;
    return account.signTransaction({
      ...{ type: 'legacy', chainId: CHAIN_ID, nonce: nonce - 1, gasPrice: GAS_PRICE, gas: 5_000_000n },
      ...transaction,
    });
  };
  return {
    address,
    /** The address of the contract that the next transaction creates. */
    next: () => getContractAddress({ from: address, nonce: BigInt(nonce) }),
    /** Sends a transaction to both chains. */
    async send(transaction: Parameters<typeof sign>[0]): Promise<Outcome[]> {
      const signed = await sign(transaction);
      return [await sendToAnvil(signed), await sendToChain(signed)];
    },
    /** Sends a transaction to the simulated chain only. Returns its hash. */
    async sendHere(transaction: Parameters<typeof sign>[0]): Promise<string> {
      const signed = await sign(transaction);
      expect(await sendToChain(signed)).toMatchObject({ isReverted: false });
      return keccak256(signed);
    },
    async delegateTo(contract: Hex): Promise<void> {
      nonce += 2;
      const authorization = await account.signAuthorization({
        ...{ contractAddress: contract, chainId: CHAIN_ID, nonce: nonce - 1 },
      });
      const signed = await account.signTransaction({
        ...{ type: 'eip7702', chainId: CHAIN_ID, nonce: nonce - 2, gas: 100_000n, to: account.address },
        ...{ maxFeePerGas: GAS_PRICE, maxPriorityFeePerGas: 0n, authorizationList: [authorization] },
      });
      await sendToChain(signed);
    },
  };
}

async function sendToAnvil(signed: Hex): Promise<Outcome> {
  const hash = await anvil.ask('eth_sendRawTransaction', signed);
  await anvil.ask('evm_mine');
  const receipt = (await anvil.ask('eth_getTransactionReceipt', hash)) as { status: Hex; gasUsed: Hex };
  return { isReverted: receipt.status === '0x0', gasUsed: BigInt(receipt.gasUsed) };
}

async function sendToChain(signed: Hex): Promise<Outcome> {
  const bytes = hexToBytes(signed.slice(2));
  const sent = await chain.broadcast(bytes);
  if (!sent.isAccepted) throw new Error(sent.message);
  const status = await chain.statusOf(sent.hash, bytes);
  if (status.kind !== 'included' && status.kind !== 'reverted') throw new Error(status.kind);
  return { isReverted: status.kind === 'reverted', gasUsed: status.feePaid / GAS_PRICE };
}

/** What both chains return to a call. */
async function read(to: Hex, data: Hex): Promise<string[]> {
  const theirs = (await anvil.ask('eth_call', { to, data }, 'latest').catch(() => '0x')) as string;
  return [theirs, bytesTo0xHex(await chain.read({ to, data: hexToBytes(data.slice(2)) }))];
}

async function expectSame(what: unknown, [theirs, ours]: readonly unknown[]): Promise<void> {
  expect({ what, ...{ is: ours } }).toEqual({ what, ...{ is: theirs } });
}

describe('contracts with bytecode', () => {
  test("OpenZeppelin's token and vault do what they do on anvil", async () => {
    const call = fc.record({
      name: fc.constantFrom('mint', 'transfer', 'approve', 'deposit', 'withdraw', 'redeem'),
      amount: fc.oneof(fc.bigInt(0n, 1_000n), fc.bigInt(0n, 2n ** 256n - 1n)),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 10, maxLength: 30 }), async (calls) => {
        const sender = await makeSender();
        const token = sender.next();
        await expectSame(
          'token',
          await sender.send({ data: encodeDeployData({ ...Token, args: [6] } as never) }),
        );
        const vault = sender.next();
        await expectSame(
          'vault',
          await sender.send({ data: encodeDeployData({ ...Vault, args: [token, 3] } as never) }),
        );
        for (const address of [token, vault]) {
          const theirs = await anvil.ask('eth_getCode', address, 'latest');
          expect(bytesTo0xHex(await chain.code(address))).toBe(theirs);
        }
        const me = sender.address;
        for (const { name, amount } of calls) {
          const arguments_: Record<string, [Hex, Contract, unknown[]]> = {
            mint: [token, Token, [me, amount]],
            transfer: [token, Token, [`0x${'12'.repeat(20)}`, amount]],
            approve: [token, Token, [vault, amount]],
            deposit: [vault, Vault, [amount, me]],
            withdraw: [vault, Vault, [amount, me, me]],
            redeem: [vault, Vault, [amount, me, me]],
          };
          const [to, { abi }, args] = arguments_[name]!;
          const data = encodeFunctionData({ abi, functionName: name, args } as never);
          await expectSame({ name, amount }, await sender.send({ to, data }));
          for (const address of [token, vault]) {
            for (const [functionName, parameters] of [
              ['totalSupply', []],
              ['balanceOf', [me]],
              ['balanceOf', [vault]],
            ] as const) {
              const query = encodeFunctionData({ abi: Vault.abi, functionName, args: parameters } as never);
              await expectSame({ address, functionName }, await read(address, query));
            }
          }
        }
      }),
      { numRuns: runs },
    );
  });
});

describe('contracts of users beside those of the sandbox', () => {
  const usdc = `0x${'c0'.repeat(20)}` as const;
  const stranger = `0x${'5a'.repeat(20)}` as const;
  // Calls the address in its first 32 bytes of calldata with the rest, and passes on what comes back.
  const forwarder = '602036038060205f375f5f825f345f355af13d5f5f3e601c573d5ffd5b3d5ff3';
  const through = (to: Hex, data: Hex): Hex => `0x${to.slice(2).padStart(64, '0')}${data.slice(2)}`;
  const erc20 = (functionName: string, ...args: unknown[]): Hex =>
    encodeFunctionData({ abi: Token.abi, functionName, args } as never);
  const callOnly = async (from: Hex, to: Hex, data: Hex, value = 0n) =>
    chain.simulate([{ from, to, value, data: hexToBytes(data.slice(2)) }]);

  async function deployed(code: string) {
    const sender = await makeSender();
    const contract = sender.next();
    await sender.send({ data: `0x${creationOf(code)}` });
    return { sender, contract };
  }

  test('a contract reads and moves tokens of the faucet, and passes on their reverts', async () => {
    const { sender, contract } = await deployed(forwarder);
    await chains.fund(chain.caip2, { address: contract, tokenAddress: usdc, rawAmount: 50n, decimals: 6 });
    const [, balance] = await read(contract, through(usdc, erc20('balanceOf', contract)));
    expect(BigInt(balance!)).toBe(50n);
    const sent = await sender.send({ to: contract, data: through(usdc, erc20('transfer', stranger, 20n)) });
    expect(sent[1]).toMatchObject({ isReverted: false });
    expect(await chain.balances(stranger, [usdc])).toEqual([20n]);
    const tooMuch = through(usdc, erc20('transfer', stranger, 31n));
    expect(await callOnly(sender.address, contract, tooMuch)).toMatchObject({
      ...{ succeeds: false, reason: 'reverts' },
      message: 'execution reverted: ERC20: transfer amount exceeds balance',
    });
    const books = (await chains.books()).find(({ tokenAddress }) => tokenAddress === usdc)!;
    expect(Object.values(books.held).reduce((sum, amount) => sum + amount, 0n)).toBe(books.given);
  });

  test('native value that a contract passes on is a movement of the transaction', async () => {
    const { sender, contract } = await deployed(forwarder);
    const hash = await sender.sendHere({ to: contract, value: 9n, data: through(stranger, '0x') });
    const { movements } = (await chain.movementsOf(hash))!;
    expect(movements.map(({ from, to, rawAmount }) => [from, to, rawAmount])).toEqual([
      [sender.address, contract, 9n],
      [contract, checksummed(stranger), 9n],
    ]);
  });

  test("the user's own token has balances, transfers and no faucet", async () => {
    const sender = await makeSender();
    const token = sender.next();
    await sender.send({ data: encodeDeployData({ ...Token, args: [18] } as never) });
    const hash = await sender.sendHere({ to: token, data: erc20('mint', sender.address, 500n) });
    expect(await chain.balances(sender.address, [token])).toEqual([500n]);
    const { movements } = (await chain.movementsOf(hash))!;
    expect(movements).toEqual([{ token, from: `0x${'0'.repeat(40)}`, to: sender.address, rawAmount: 500n }]);
    const funded = chains.fund(chain.caip2, { address: sender.address, tokenAddress: token, rawAmount: 1n });
    expect(await funded).toMatchObject({ fault: 'tokenAddress' });
    expect((await chains.books()).map(({ tokenAddress }) => tokenAddress)).not.toContain(token.toLowerCase());
  });

  test('an account delegates to a contract of its own (EIP-7702)', async () => {
    const { sender, contract } = await deployed(forwarder);
    await sender.delegateTo(contract);
    expect(bytesTo0xHex(await chain.code(sender.address))).toBe(`0xef0100${contract.slice(2).toLowerCase()}`);
    const hash = await sender.sendHere({ to: sender.address, value: 3n, data: through(stranger, '0x') });
    const { movements } = (await chain.movementsOf(hash))!;
    expect(movements.at(-1)).toMatchObject({
      from: sender.address,
      to: checksummed(stranger),
      rawAmount: 3n,
    });
  });

  test('an endless loop ends at its gas limit, and other work has its turn before that', async () => {
    const { sender, contract } = await deployed('5b5f56');
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    const result = await callOnly(sender.address, contract, '0x');
    clearInterval(timer);
    expect(result).toMatchObject({ succeeds: false, message: 'out of gas' });
    expect(turns).toBeGreaterThan(5);
  });
});

/** Init code that stores `code` as the code of the contract: CODECOPY(0, 12, length), RETURN(0, length). */
function creationOf(code: string): string {
  const length = (code.length / 2).toString(16).padStart(4, '0');
  return `61${length}80600c6000396000f3${code}`;
}
