import { TransactionEntity } from '../../domain/money/transactions/transaction.entity.ts';
import { normalizeAddress } from '../../engine/assets/addresses.ts';
import { decimalText, divide, fromRaw } from '../../engine/assets/decimal.ts';
import { chainOfCaip2 } from '../../engine/assets/known-chains.ts';
import { ApiError, invalidField, notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import {
  type Pool,
  requireSimulated,
  requireSimulatedEvm,
  rpcChain,
  type StoredAbi,
} from '../controllable-chains.ts';
import { payGas, payOut, readDeposit } from '../faucet.ts';
import type { SandboxTransactionEffect } from '../generated/schemas.ts';
import { answerMessage } from '../json-rpc.ts';
import {
  amountView,
  assetTerms,
  decodedView,
  listTransactionViews,
  type Terms,
  termsIn,
  transactionDetails,
} from '../transactions.ts';

export const fundAddress: Handler<'fundAddress'> = async ({ body }, context) => {
  const given = await readDeposit(body, context);
  const { caip2, address, tokenAddress, rawAmount, decimals } = given;
  const isNative = tokenAddress === null;
  // For the native asset, the gas is added first, so that the returned balance includes it. For a token, it is added
  // last, so that a rejected deposit adds none.
  if (body.with_gas === true && isNative) await payGas(body, context);
  const funded = await payOut(given, context);
  if (body.with_gas === true && !isNative) await payGas(body, context);
  return {
    caip2,
    address,
    token_address: tokenAddress,
    raw_amount: String(rawAmount),
    decimals,
    raw_balance: String(funded.rawBalance),
    transaction_hash: funded.hash,
    block_number: Number(funded.blockNumber),
  };
};

export const getBooks: Handler<'getBooks'> = async (_, { chains, fiat }) => ({
  data: (await chains.books()).map(({ caip2, tokenAddress, symbol, decimals, given, minted, held }) => ({
    ...{ caip2, token_address: tokenAddress, symbol, decimals },
    ...{ given: String(given), minted: String(minted) },
    held: Object.fromEntries(Object.entries(held).map(([holder, amount]) => [holder, String(amount)])),
  })),
  fiat: [...(await fiat.books())],
});

export const listPools: Handler<'listPools'> = async ({ query }, context) => {
  const { chains } = context;
  const { chain, transaction_hash: hash } = query;
  const caip2 = chain === undefined ? undefined : requireSimulatedEvm(chains, chain);
  const pools = await chains.pools({ caip2, hash: hash?.toLowerCase() });
  const terms = await assetTerms(
    pools.flatMap((pool) => pool.tokens.map((tokenAddress) => ({ caip2: pool.caip2, tokenAddress }))),
    context,
  );
  return { data: pools.map((pool) => poolView(pool, terms)) };
};

/** The fee of the router's pools in basis points. See `contracts/Pair.sol`. */
const POOL_FEE_BPS = 30;
/** CHOICE: enough decimals for a price far below one; with 18 of them, the rounding of reserves would show. */
const PRICE_PLACES = 15;

function poolView({ caip2, address, tokens, reserves, trades }: Pool, terms: Terms) {
  const assets = tokens.map((tokenAddress, index) => {
    const { symbol, decimals } = termsIn(terms, caip2, tokenAddress);
    const rawReserve = reserves[index]!;
    return {
      ...{ token_address: normalizeAddress(tokenAddress), symbol, decimals, raw_reserve: String(rawReserve) },
      reserve: decimalText(fromRaw(rawReserve, decimals)),
    };
  });
  const priceAt = ([first, second]: Pool['reserves']): string | null => {
    if (first === 0n) return null;
    const [one, other] = [fromRaw(first, assets[0]!.decimals), fromRaw(second, assets[1]!.decimals)];
    return decimalText(divide(other, one, PRICE_PLACES));
  };
  return {
    ...{ caip2, chain: chainOfCaip2(caip2)?.name ?? null, address: normalizeAddress(address), assets },
    ...{ price: priceAt(reserves), fee_bps: POOL_FEE_BPS },
    trades: trades.map(({ paidIn, paidOut, before, after }) => ({
      ...{ raw_in: paidIn.map(String), raw_out: paidOut.map(String) },
      ...{ raw_reserves_before: before.map(String), raw_reserves_after: after.map(String) },
      ...{ price_before: priceAt(before), price_after: priceAt(after) },
    })),
  };
}

export const movePrices: Handler<'movePrices'> = async ({ body }, { prices, runDueJobs }) => {
  const changes = new Map(Object.entries(body.prices));
  for (const [asset, price] of changes) {
    if (!/^[a-z0-9.]{1,32}$/.test(asset)) {
      throw invalidField('/prices', `expected the names of assets, got \`${asset}\``);
    }
    if (price !== null && /^[0.]+$/.test(price)) {
      throw invalidField(`/prices/${asset}`, `expected a price above 0, got \`${price}\``);
    }
  }
  await prices.move(changes);
  await runDueJobs();
  return { prices: Object.fromEntries(await prices.all()) };
};

export const mineBlocks: Handler<'mineBlocks'> = async ({ body }, { chains, runDueJobs }) => {
  const caip2 = body.chain === undefined ? undefined : requireSimulated(chains, body.chain);
  const heights = await chains.mine(caip2, body.count ?? 1);
  await runDueJobs();
  return { data: [...heights].map(([name, height]) => ({ caip2: name, block_number: Number(height) })) };
};

export const listSandboxTransactions: Handler<'listSandboxTransactions'> = ({ query }, context) =>
  listTransactionViews(query, context);

export const getSandboxTransaction: Handler<'getSandboxTransaction'> = ({ path }, context) =>
  transactionDetails(path.transaction_id, context);

/** The chains that support each effect, by the beginning of their CAIP-2 id. */
const chainsWith: Readonly<Record<SandboxTransactionEffect, RegExp>> = {
  drop: /./,
  replace: /^eip155:/,
  revert: /^(eip155|solana|tron):/,
};

export const steerTransaction: Handler<'steerTransaction'> = async (
  { path, body },
  { chains, read, runDueJobs },
) => {
  const { effect } = body;
  await runDueJobs();
  const fields = ['id', 'caip2', 'status', 'transactionHash', 'userOperationHash'] as const;
  const found = await read((em) => em.findOne(TransactionEntity, { id: path.transaction_id }, { fields }));
  if (found === null) throw notFound('Transaction');
  const { id, caip2, status, transactionHash: hash, userOperationHash } = found;
  if (hash === null || userOperationHash !== null) {
    throw new ApiError(
      'invalid_state',
      'the transaction is a user operation, which only its bundler includes',
    );
  }
  if (!chains.has(caip2) || !chainsWith[effect].test(caip2)) {
    throw new ApiError('invalid_state', `transactions on \`${caip2}\` cannot be made to \`${effect}\``);
  }
  if (!(await chains.steer(caip2, hash, effect))) {
    throw new ApiError('invalid_state', `no pool contains the transaction, which is \`${status}\``);
  }
  await runDueJobs();
  return { transaction_id: id, transaction_hash: hash, effect };
};

export const callChainRpc: Handler<'callChainRpc'> = async ({ path, body }, context) =>
  answerMessage(context, rpcChain(context.chains, path.chain), body, context);

export const listChains: Handler<'listChains'> = async (_, { chains }) => ({
  data: await Promise.all(
    (await chains.used()).map(async (caip2) => {
      const { number, seconds, blockMs, finalityBlocks } = await chains.head(caip2);
      const isEvm = caip2.startsWith('eip155:');
      const name = chainOfCaip2(caip2)?.name ?? null;
      const latest = { block_number: number, block_at_ms: seconds * 1000 };
      const terms = { block_ms: blockMs, finality_blocks: finalityBlocks };
      return { caip2, name, ...latest, ...terms, is_evm: isEvm };
    }),
  ),
});

export const listChainTransactions: Handler<'listChainTransactions'> = async ({ path, query }, context) => {
  const { chains } = context;
  const caip2 = rpcChain(chains, path.chain);
  const { limit = 100, cursor: before } = query;
  const found = await chains.transactions(caip2, { limit: limit + 1, before });
  const page = found.slice(0, limit);
  const moved = page.flatMap(({ movements }) => movements);
  const terms = await assetTerms(
    moved.map(({ tokenAddress }) => ({ caip2, tokenAddress })),
    context,
  );
  return {
    data: page.map(({ hash, block, sender, recipient, contract, ...each }) => ({
      ...{ hash, block_number: block.number, block_at_ms: block.seconds * 1000, from: sender, to: recipient },
      ...{ contract_address: contract, value: String(each.value), data: each.data },
      ...{ gas_used: String(each.gasUsed), is_deposit: each.isDeposit, reason: each.reason ?? null },
      call: decodedView(each.call),
      logs: each.logs.map(({ address, topics, data, event }) => ({
        ...{ address, topics: [...topics], data, event: decodedView(event) },
      })),
      log_messages: [...each.messages],
      movements: each.movements.map(({ from, to, ...amount }) => ({
        ...{ from, to },
        ...amountView(caip2, amount, terms),
      })),
    })),
    next_cursor: found.length > limit ? page.at(-1)!.position : null,
  };
};

export const listAbis: Handler<'listAbis'> = async (_, { chains }) => ({
  data: (await chains.abis()).list().map(abiView),
});

export const putAbi: Handler<'putAbi'> = async ({ path, body }, { chains }) => {
  const { name } = path;
  const address = body.address?.toLowerCase() ?? null;
  const stored = (await chains.abis()).put({ name, address, items: body.abi });
  if (stored === 'malformed') {
    throw invalidField('/abi', 'expected the functions, events and errors of an ABI in JSON');
  }
  if (stored === 'too many')
    throw new ApiError('invalid_state', 'the sandbox keeps at most 500 interfaces with 20,000 items');
  return abiView(stored);
};

export const deleteAbi: Handler<'deleteAbi'> = async ({ path }, { chains }) => {
  if (!(await chains.abis()).remove(path.name)) throw notFound('Interface');
  return { name: path.name };
};

function abiView({ name, address, items }: StoredAbi) {
  return { name, address, items: items.length };
}
