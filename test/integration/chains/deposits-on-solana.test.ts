import { createHash } from 'node:crypto';
import { Keypair, PublicKey, SystemProgram, Transaction, TransactionInstruction } from '@solana/web3.js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectChains } from '../../../src/adapters/chain-rpc/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { followDeposits } from '../../../src/jobs/follow-deposits.ts';
import type { SolanaChain } from '../../../src/ports/chains.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { databaseKinds } from '../../support/databases.ts';
import { genesisHash, type LiteSvmNode, startLiteSvmNode } from '../../support/litesvm-node.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

const caip2 = `solana:${genesisHash.slice(0, 32)}`;
const tokenProgram = new PublicKey('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA');
const associatedProgram = new PublicKey('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL');
const mint = keypair('a named mint').publicKey;
const payer = keypair('payer');

function keypair(text: string): Keypair {
  return Keypair.fromSeed(createHash('sha256').update(text).digest());
}

function tokenAccount(owner: PublicKey, of = mint): PublicKey {
  const seeds = [owner.toBytes(), tokenProgram.toBytes(), of.toBytes()];
  return PublicKey.findProgramAddressSync(seeds, associatedProgram)[0];
}

describe.each(databaseKinds)('deposits on a node of Solana, on %s', (kind) => {
  let node: LiteSvmNode;
  let chain: SolanaChain;
  let operations: TestOperations;
  let wallet: Wallet;

  beforeEach(async () => {
    node = await startLiteSvmNode();
    const endpoints = [{ caip2, urls: [node.url] }];
    const chains = connectChains(endpoints, silentLog, { namedTokens: () => [mint.toBase58()] });
    chain = chains.find(caip2) as SolanaChain;
    operations = await openOperations(kind, { chains });
    wallet = (await operations.run('createWallet', { body: { chain_type: 'solana' } })).body as Wallet;
    node.fund(payer.publicKey.toBase58(), 10n ** 10n);
    node.makeMint(mint.toBase58(), 6);
    // Before the first reading.
    await pay(1_500_000n);
    await read();
  });
  afterEach(async () => {
    await operations[Symbol.asyncDispose]();
    await node[Symbol.asyncDispose]();
  });

  async function send(...instructions: TransactionInstruction[]): Promise<string> {
    const { blockhash } = await chain.latestBlockhash();
    const transaction = new Transaction({ feePayer: payer.publicKey, recentBlockhash: blockhash });
    transaction.add(...instructions).sign(payer);
    const sent = await chain.broadcast(transaction.serialize());
    if (!sent.isAccepted) throw new Error(sent.message);
    return sent.hash;
  }

  function pay(lamports: bigint, to = wallet.address): Promise<string> {
    return send(
      SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: new PublicKey(to), lamports }),
    );
  }

  function giveAccount(owner: PublicKey, amount: bigint): PublicKey {
    const address = tokenAccount(owner);
    node.fundToken({
      ...{ address: address.toBase58(), owner: owner.toBase58(), mint: mint.toBase58() },
      amount,
    });
    return address;
  }

  function transferToken(destination: PublicKey, amount: bigint): Promise<string> {
    // TransferChecked: 12 || amount u64 || decimals u8
    const data = Buffer.alloc(10);
    data[0] = 12;
    data.writeBigUInt64LE(amount, 1);
    data[9] = 6;
    const keys = [
      { pubkey: tokenAccount(payer.publicKey), isSigner: false, isWritable: true },
      { pubkey: mint, isSigner: false, isWritable: false },
      { pubkey: destination, isSigner: false, isWritable: true },
      { pubkey: payer.publicKey, isSigner: true, isWritable: false },
    ];
    return send(new TransactionInstruction({ programId: tokenProgram, keys, data }));
  }

  async function read(): Promise<void> {
    const inUnit = inUnitOf(unitsOf(operations.database));
    const job = followDeposits({ services: operations.services, inUnit });
    await job.run(() => undefined);
  }

  async function reported(): Promise<Record<string, unknown>[]> {
    const rows = await operations.database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .select('payload')
      .where('type', '=', 'wallet.funds_deposited')
      .orderBy('sequence')
      .execute();
    return rows.map(({ payload }) => JSON.parse(payload));
  }

  test('SOL and tokens from any sender are reported once', async () => {
    giveAccount(payer.publicKey, 1000n);
    const account = giveAccount(new PublicKey(wallet.address), 5n);
    const hash = await pay(2_000_000n);
    const tokenHash = await transferToken(account, 250n);
    await pay(3_000_000n, keypair('another').publicKey.toBase58());
    await read();
    await read();
    await read();
    const common = {
      ...{ type: 'wallet.funds_deposited', wallet_id: wallet.id, caip2 },
      ...{ sender: payer.publicKey.toBase58(), recipient: wallet.address },
      block: { number: expect.any(Number), timestamp: 1_767_225_600 },
    };
    expect(await reported()).toEqual([
      {
        ...common,
        idempotency_key: `deposited:${caip2}:${hash}:native:${wallet.id}`,
        asset: { type: 'native-token', address: null },
        amount: '2000000',
        transaction_hash: hash,
      },
      {
        ...common,
        idempotency_key: `deposited:${caip2}:${tokenHash}:${mint.toBase58()}:${wallet.id}`,
        asset: { type: 'spl', mint: mint.toBase58() },
        amount: '250',
        transaction_hash: tokenHash,
      },
    ]);
  });

  test('more addresses than a page has are asked in turn, and a round misses nothing', async () => {
    const wallets = [wallet];
    for (let made = 0; made < 20; made += 1) {
      wallets.push((await operations.run('createWallet', { body: { chain_type: 'solana' } })).body as Wallet);
    }
    for (const each of wallets) await pay(1_000_000n, each.address);
    await read();
    // While the round is under way.
    for (const each of wallets) await pay(1_000_001n, each.address);
    for (let page = 0; page < 4; page += 1) await read();
    const amounts = Map.groupBy(await reported(), (payload) => payload.wallet_id);
    expect(amounts.size).toBe(21);
    for (const payloads of amounts.values()) {
      expect(payloads.map(({ amount }) => amount)).toEqual(['1000000', '1000001']);
    }
  });
});
