import { createHash } from 'node:crypto';
import { Keypair, PublicKey, SystemProgram, Transaction, TransactionInstruction } from '@solana/web3.js';
import { encodeFunctionData, erc20Abi, type Hex, toHex } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BATCH_EXECUTOR_ADDRESS } from '../../../src/engine/signing/ethereum/batch-executor.ts';
import type { Wallet, WalletRpcRequest } from '../../../src/generated/schemas.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';
import { call, refusal } from '../../support/call.ts';
import { executorCode, tokenCode } from '../../support/evm-assembly.ts';
import { genesisHash, type LiteSvmNode, startLiteSvmNode } from '../../support/litesvm-node.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

// The same requests through the HTTP API on simulated chains and on real nodes: callers see no difference.

const evmId = 'eip155:31337';
const solanaId = `solana:${genesisHash.slice(0, 32)}`;
const token = '0x00000000000000000000000000000000000c0ffe';
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const mint = keypair('mint').publicKey;
const ether = 10n ** 18n;

interface World extends AsyncDisposable {
  readonly sandbox: TestSandbox;
  /** Native units, and a token's. */
  fundEvm(address: string, wei: bigint, tokens: bigint): Promise<unknown>;
  fundSolana(address: string, lamports: bigint, tokens: bigint): Promise<unknown>;
  /** Sent transactions are included in a block and recorded as events. */
  settle(): Promise<unknown>;
}

const worlds: Record<string, () => Promise<World>> = {
  async simulated() {
    const sandbox = await startSandbox();
    const { chains } = sandbox;
    return {
      sandbox,
      async fundEvm(address, wei, tokens) {
        await chains.fund(evmId, { address, tokenAddress: null, rawAmount: wei });
        await chains.fund(evmId, { address, tokenAddress: token, rawAmount: tokens, decimals: 6 });
      },
      async fundSolana(address, lamports, tokens) {
        await chains.fund(solanaId, { address, tokenAddress: null, rawAmount: lamports });
        await chains.fund(solanaId, { address, tokenAddress: String(mint), rawAmount: tokens, decimals: 6 });
      },
      settle: () => waitSeconds(sandbox, 30),
      [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
    };
  },
  async 'anvil and litesvm'() {
    const [anvil, litesvm] = await Promise.all([openAnvil(), openLiteSvm()]);
    const sandbox = await startSandbox({
      rpc: [
        { caip2: evmId, urls: [anvil.url] },
        { caip2: solanaId, urls: [litesvm.url] },
      ],
    });
    return {
      sandbox,
      async fundEvm(address, wei, tokens) {
        await anvil.ask('anvil_setBalance', address, toHex(wei));
        const slot = `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;
        await anvil.ask('anvil_setStorageAt', token, slot, toHex(tokens, { size: 32 }));
      },
      async fundSolana(address, lamports, tokens) {
        litesvm.fund(address, lamports);
        const account = associated(new PublicKey(address)).toBase58();
        litesvm.fundToken({ address: account, owner: address, mint: String(mint), amount: tokens });
      },
      async settle() {
        await anvil.ask('evm_mine');
        await waitSeconds(sandbox, 30);
      },
      async [Symbol.asyncDispose]() {
        await sandbox[Symbol.asyncDispose]();
        await anvil[Symbol.asyncDispose]();
        await litesvm[Symbol.asyncDispose]();
      },
    };
  },
};

async function openAnvil(): Promise<Anvil> {
  const anvil = await startAnvil(31337);
  await anvil.ask('anvil_setCode', token, tokenCode);
  await anvil.ask('anvil_setCode', BATCH_EXECUTOR_ADDRESS, executorCode);
  return anvil;
}

async function openLiteSvm(): Promise<LiteSvmNode> {
  const node = await startLiteSvmNode();
  node.makeMint(String(mint), 6);
  return node;
}

function keypair(name: string): Keypair {
  return Keypair.fromSeed(createHash('sha256').update(name).digest());
}

const tokenProgram = new PublicKey('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA');
const associatedProgram = new PublicKey('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL');

function associated(owner: PublicKey): PublicKey {
  const seeds = [owner.toBuffer(), tokenProgram.toBuffer(), mint.toBuffer()];
  return PublicKey.findProgramAddressSync(seeds, associatedProgram)[0];
}

/** TransferChecked of the token program. */
function moveTokens(from: PublicKey, to: PublicKey, amount: bigint): TransactionInstruction {
  const data = Buffer.alloc(10);
  data.writeUInt8(12, 0);
  data.writeBigUInt64LE(amount, 1);
  data.writeUInt8(6, 9);
  return new TransactionInstruction({
    programId: tokenProgram,
    data,
    keys: [
      { pubkey: associated(from), isSigner: false, isWritable: true },
      { pubkey: mint, isSigner: false, isWritable: false },
      { pubkey: associated(to), isSigner: false, isWritable: true },
      { pubkey: from, isSigner: true, isWritable: false },
    ],
  });
}

const tokenTransfer = (amount: bigint, to: string = receiver) => ({
  to: token,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to as Hex, amount] }),
});

describe.each(Object.entries(worlds))('%s', (_name, open) => {
  let world: World;
  beforeAll(async () => {
    world = await open();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function createWallet(chainType: 'ethereum' | 'solana'): Promise<Wallet> {
    return (await call(world.sandbox, 'createWallet', { body: { chain_type: chainType } })).body;
  }

  async function send(wallet: Wallet, body: object) {
    const input = { path: { wallet_id: wallet.id }, body: body as WalletRpcRequest };
    return (await call(world.sandbox, 'walletRpc', input)).body.data as unknown as Record<string, string>;
  }

  async function codeOf(wallet: Wallet, body: object): Promise<string | undefined> {
    const path = { wallet_id: wallet.id };
    return (await refusal(world.sandbox, 'walletRpc', { path, body })).body.code;
  }

  async function endOf({ transaction_id: id = '' }: Record<string, string>) {
    const { body } = await call(world.sandbox, 'getTransaction', { path: { transaction_id: id } });
    return { status: body.status, hash: body.transaction_hash };
  }

  const chainOf = (caip2: string) => world.sandbox.services.chains.find(caip2)!;
  const ethSend = (transaction: object) => ({
    method: 'eth_sendTransaction',
    caip2: evmId,
    params: { transaction },
  });
  const settled = (status: string) => ['confirmed', 'finalized'].includes(status);

  test('eth_sendTransaction: a token moves', async () => {
    const wallet = await createWallet('ethereum');
    await world.fundEvm(wallet.address, ether, 1_000n);
    const before = (await chainOf(evmId).balances(receiver, [token]))[0]!;
    const sent = await send(wallet, ethSend(tokenTransfer(400n)));
    expect((await endOf(sent)).status).toBe('broadcasted');
    await world.settle();
    const { status, hash } = await endOf(sent);
    expect({ isSettled: settled(status), hash }).toEqual({ isSettled: true, hash: sent.hash });
    expect(await chainOf(evmId).balances(wallet.address, [token])).toEqual([600n]);
    expect(await chainOf(evmId).balances(receiver, [token])).toEqual([before + 400n]);
  });

  test('wallet_sendCalls: the account runs its calls in one transaction, delegating itself once', async () => {
    const wallet = await createWallet('ethereum');
    await world.fundEvm(wallet.address, ether, 1_000n);
    const other = (await createWallet('ethereum')).address;
    const calls = [tokenTransfer(100n, other), { to: other, value: '0x9' }];
    const body = { method: 'wallet_sendCalls', caip2: evmId, params: { calls } };
    const sent: Record<string, string>[] = [];
    for (let time = 0; time < 2; time += 1) {
      sent.push(await send(wallet, body));
      await world.settle();
    }
    for (const each of sent) expect(settled((await endOf(each)).status)).toBe(true);
    expect(await chainOf(evmId).balances(other, [null, token])).toEqual([18n, 200n]);
    // Two transactions and one authorization.
    const chain = chainOf(evmId);
    expect(chain.kind === 'evm' && (await chain.nonce(wallet.address))).toBe(3n);
  });

  test('concurrent sends use different nonces and all arrive', async () => {
    const wallet = await createWallet('ethereum');
    await world.fundEvm(wallet.address, ether, 0n);
    const other = (await createWallet('ethereum')).address;
    const sent = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((value) => send(wallet, ethSend({ to: other, value }))),
    );
    await world.settle();
    for (const each of sent) expect(settled((await endOf(each)).status)).toBe(true);
    expect(await chainOf(evmId).balances(other, [null])).toEqual([21n]);
  });

  test('what a chain would refuse is refused with the same code', async () => {
    const wallet = await createWallet('ethereum');
    await world.fundEvm(wallet.address, ether, 5n);
    expect(await codeOf(wallet, ethSend(tokenTransfer(6n)))).toBe('transaction_execution_failure');
    expect(await codeOf(wallet, ethSend({ to: receiver, value: toHex(2n * ether) }))).toBe(
      'insufficient_funds',
    );
    expect(await codeOf(wallet, ethSend({ to: receiver, chain_id: 1 }))).toBe('invalid_data');
    await send(wallet, ethSend({ to: receiver, value: 1, nonce: 0 }));
    await world.settle();
    expect(await codeOf(wallet, ethSend({ to: receiver, value: 2, nonce: 0 }))).toBe(
      'transaction_broadcast_failure',
    );
    await send(wallet, ethSend({ to: receiver, value: 3 }));
  });

  test('signAndSendTransaction: SOL and a token move, with a recent blockhash', async () => {
    const wallet = await createWallet('solana');
    await world.fundSolana(wallet.address, 1_000_000_000n, 500n);
    const from = new PublicKey(wallet.address);
    const to = keypair(wallet.id).publicKey;
    await world.fundSolana(String(to), 1_000_000_000n, 1n);
    const transaction = new Transaction({ feePayer: from, recentBlockhash: '1'.repeat(32) }).add(
      SystemProgram.transfer({ fromPubkey: from, toPubkey: to, lamports: 5_000_000 }),
      moveTokens(from, to, 200n),
    );
    const sent = await send(wallet, {
      method: 'signAndSendTransaction',
      caip2: solanaId,
      params: {
        transaction: transaction.serialize({ requireAllSignatures: false }).toString('base64'),
        encoding: 'base64',
      },
    });
    await world.settle();
    const { status, hash } = await endOf(sent);
    expect({ isSettled: settled(status), hash }).toEqual({ isSettled: true, hash: sent.hash });
    const chain = chainOf(solanaId);
    expect(await chain.balances(String(to), [null, String(mint)])).toEqual([1_005_000_000n, 201n]);
    // 5000 lamports for the one signature.
    expect(await chain.balances(wallet.address, [null, String(mint)])).toEqual([994_995_000n, 300n]);
    const tooMuch = new Transaction({ feePayer: from, recentBlockhash: '1'.repeat(32) }).add(
      moveTokens(from, to, 301n),
    );
    expect(
      await codeOf(wallet, {
        method: 'signAndSendTransaction',
        caip2: solanaId,
        params: {
          transaction: tooMuch.serialize({ requireAllSignatures: false }).toString('base64'),
          encoding: 'base64',
        },
      }),
    ).toBe('transaction_execution_failure');
  });
});

test('anvil drops the block: the same bytes are broadcast again and included in another block', async () => {
  await using anvil = await openAnvil();
  await using sandbox = await startSandbox({ rpc: [{ caip2: evmId, urls: [anvil.url] }] });
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  await anvil.ask('anvil_setBalance', wallet.address, toHex(ether));
  const snapshot = await anvil.ask('evm_snapshot');
  const body = {
    method: 'eth_sendTransaction',
    caip2: evmId,
    params: { transaction: { to: receiver, value: 7 } },
  } as WalletRpcRequest;
  const { body: answer } = await call(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
  const { hash, transaction_id: id } = answer.data as unknown as Record<string, string>;
  const look = async () => (await call(sandbox, 'getTransaction', { path: { transaction_id: id! } })).body;
  await anvil.ask('evm_mine');
  await waitSeconds(sandbox, 5);
  expect(await look()).toMatchObject({ status: 'confirmed', transaction_hash: hash });
  // Reverts the block: anvil drops the transaction too.
  await anvil.ask('evm_revert', snapshot);
  await anvil.ask('anvil_dropAllTransactions');
  expect(await anvil.ask('eth_getTransactionByHash', hash)).toBeNull();
  await waitSeconds(sandbox, 10);
  // One look does not show that the block is gone.
  expect(await look()).toMatchObject({ status: 'confirmed', transaction_hash: hash });
  expect(await anvil.ask('eth_getTransactionByHash', hash)).not.toBeNull();
  await anvil.ask('evm_mine');
  await waitSeconds(sandbox, 10);
  expect(await look()).toMatchObject({ status: 'confirmed', transaction_hash: hash });
  expect(Number(await anvil.ask('eth_getBalance', receiver, 'latest'))).toBe(7);
  expect(Number(await anvil.ask('eth_getTransactionCount', wallet.address, 'latest'))).toBe(1);
});
