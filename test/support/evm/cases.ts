import { concat, type Hex, keccak256, numberToHex, pad, toHex, zeroAddress } from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import type { Random } from '../../simulation/random.ts';
import { BASE_FEE, CHAIN_ID } from './pair.ts';
import { bytesOf, deploying, initCode, program, SLOTS, type Surroundings } from './programs.ts';

// Random transactions among random contracts.

/** An account as it is before the transactions. */
interface Placed {
  readonly address: Hex;
  readonly balance: bigint;
  readonly nonce: number;
  readonly code: Hex;
  readonly words: readonly bigint[];
}

export interface Case {
  readonly accounts: readonly Placed[];
  /** The accounts to look at afterwards. */
  readonly watched: readonly Hex[];
  /** The signed transactions of one block, in order. */
  readonly transactions: readonly Sent[];
  /** Whether the gas of the first one is estimated, for which its program runs many times with all the gas there is. */
  readonly isEstimated: boolean;
}

export interface Sent {
  readonly signed: Hex;
  readonly accessList: readonly { readonly address: Hex; readonly storageKeys: readonly Hex[] }[];
  /** Who may have signed its authorizations. */
  readonly signers: readonly Hex[];
  /** The same transaction as a call. */
  readonly call: Readonly<Record<string, unknown>>;
}

const MAX_GAS = 16_600_000n;
const AUTHORIZATION_GAS = 25_000;

function accountOf(random: Random): PrivateKeyAccount {
  return privateKeyToAccount(keccak256(bytesOf(random, 32)));
}

function addressOf(random: Random): Hex {
  return `0x${keccak256(bytesOf(random, 32)).slice(26)}`;
}

export async function randomCase(random: Random): Promise<Case> {
  const senders = Array.from(
    {
      length: random.weighted([
        [3, 1],
        [1, 2],
      ]),
    },
    () => accountOf(random),
  );
  const contracts = Array.from({ length: random.between(1, 4) }, () => addressOf(random));
  const others = [addressOf(random), addressOf(random)];
  const delegated = accountOf(random);
  const strangers = Array.from({ length: 4 }, () => accountOf(random));
  const allStrangers = [...strangers];
  const all = [
    ...contracts,
    ...contracts,
    ...others,
    delegated.address,
    ...senders.map(({ address }) => address),
  ];
  const addresses = all.map((each) => each.toLowerCase() as Hex);
  const around: Surroundings = { addresses, levels: 2 };
  const funded = (address: Hex): Placed => ({
    address,
    balance: 10n ** 20n,
    nonce: 0,
    code: '0x',
    words: [],
  });
  const delegate = random.pick<Hex>([
    ...contracts,
    ...contracts,
    others[0]!,
    '0x0000000000000000000000000000000000000004',
  ]);
  const accounts: Placed[] = [
    ...senders.map(({ address }) => ({ ...funded(address), nonce: random.pick([0, 0, 1, 5]) })),
    ...contracts.map((address) => ({
      ...{ address, balance: random.pick([0n, 0n, 1n, 10n ** 18n]), nonce: 1 },
      code: program(random, around, 40),
      words: Array.from({ length: SLOTS }, () => random.pick([0n, 0n, 1n, 2n])),
    })),
    // Anvil refunds the authorization of an account that does not exist, which EIP-7702 denies: so all of them exist.
    ...strangers.map(({ address }) => ({ ...funded(address), balance: 1n })),
    { ...funded(others[0]!), balance: random.pick([0n, 5n]) },
    {
      ...funded(delegated.address),
      ...{ balance: 9n, nonce: random.pick([0, 1]) },
      code: random.chance(0.5) ? concat(['0xef0100', delegate]) : '0x',
    },
  ];
  const nonces = new Map(accounts.map(({ address, nonce }) => [address, nonce]));
  const transactions: Sent[] = [];
  for (
    let left = random.weighted([
      [5, 1],
      [2, 2],
      [1, 3],
    ]);
    left > 0;
    left -= 1
  ) {
    const sender = random.pick(senders);
    transactions.push(
      await transaction(random, {
        sender,
        around,
        contracts,
        delegated,
        strangers,
        all: allStrangers,
        nonces,
        isLast: left === 1,
      }),
    );
  }
  const watched = accounts.map(({ address }) => address);
  return { accounts, watched, transactions, isEstimated: random.chance(0.1) };
}

interface Makers {
  readonly sender: PrivateKeyAccount;
  readonly around: Surroundings;
  readonly contracts: readonly Hex[];
  /** An account that signs authorizations. */
  readonly delegated: PrivateKeyAccount;
  /** Accounts that have signed nothing yet. */
  readonly strangers: PrivateKeyAccount[];
  readonly all: readonly PrivateKeyAccount[];
  /** The next nonce of each account. */
  readonly nonces: Map<string, number>;
  /** Whether no transaction follows. One of a sender who signs an authorization would have to skip a nonce. */
  readonly isLast: boolean;
}

async function transaction(random: Random, makers: Makers): Promise<Sent> {
  const { sender, around, contracts, nonces } = makers;
  const nonce = nonces.get(sender.address)!;
  nonces.set(sender.address, nonce + 1);
  const type = random.pick(['legacy', 'eip2930', 'eip1559', 'eip1559', 'eip7702'] as const);
  const creates = type !== 'eip7702' && random.chance(0.2);
  const data = creates
    ? random.chance(0.5)
      ? initCode(random, around)
      : deploying(program(random, around, 20))
    : random.weighted<Hex>([
        [4, bytesOf(random, random.below(100))],
        [1, '0x'],
        [0.5, pad('0x01', { size: 2_000 })],
        [0.3, bytesOf(random, 2_500)],
      ]);
  const target = random.weighted<() => Hex>([
    [10, () => random.pick(contracts)],
    [2, () => random.pick(around.addresses)],
    [1, () => numberToHex(random.between(1, 0x12), { size: 20 })],
  ])();
  const accessList = Array.from({ length: random.below(3) }, () => ({
    address: random.pick(around.addresses),
    storageKeys: Array.from({ length: random.below(3) }, () =>
      numberToHex(random.below(SLOTS), { size: 32 }),
    ),
  }));
  const authorizationList = type === 'eip7702' ? await authorizations(random, makers) : undefined;
  const gas = random.weighted<bigint>([
    [6, BigInt(random.between(140_000, 280_000))],
    [2, 500_000n],
    [0.1, 3_000_000n],
    [0.02, MAX_GAS],
  ]);
  const value = random.weighted<bigint>([
    [5, 0n],
    [3, BigInt(random.below(10))],
    [0.5, 10n ** 19n],
  ]);
  const fields = {
    ...(creates ? {} : { to: target }),
    ...(data === '0x' ? {} : { data }),
    ...(type === 'legacy' ? {} : { accessList }),
    ...{ value, gas: gas + BigInt(AUTHORIZATION_GAS * (authorizationList?.length ?? 0)) },
    ...(authorizationList === undefined ? {} : { authorizationList }),
  };
  const tip = random.pick([0n, 1n, BASE_FEE]);
  const price =
    type === 'legacy' || type === 'eip2930'
      ? { gasPrice: BASE_FEE + tip }
      : { maxFeePerGas: random.pick([BASE_FEE, 2n * BASE_FEE]), maxPriorityFeePerGas: tip };
  const signed = await sender.signTransaction({
    type,
    chainId: CHAIN_ID,
    nonce,
    ...fields,
    ...price,
  } as never);
  const signers = [sender, makers.delegated, ...makers.all].map((each) => each.address.toLowerCase() as Hex);
  return {
    ...{ signed, signers, accessList: type === 'legacy' ? [] : accessList },
    call: callOf(sender.address, fields),
  };
}

export function callOf(
  from: Hex,
  fields: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { value, gas, authorizationList, ...rest } = fields as {
    value: bigint;
    gas: bigint;
    authorizationList?: readonly Record<string, unknown>[];
  };
  const list = authorizationList?.map(({ address, chainId, nonce, r, s, yParity }) => ({
    ...{ address, r, s },
    ...{
      chainId: toHex(chainId as number),
      nonce: toHex(nonce as number),
      yParity: toHex(yParity as number),
    },
  }));
  return {
    ...{ from, ...rest, value: toHex(value), gas: toHex(gas) },
    ...(list === undefined ? {} : { authorizationList: list }),
  };
}

/** Valid authorizations, and those that a chain skips. */
async function authorizations(random: Random, makers: Makers) {
  const { sender, around, contracts, delegated, strangers, nonces, isLast } = makers;
  const list = [];
  for (let left = random.between(1, 3); left > 0; left -= 1) {
    const signer = random.weighted([
      [4, delegated],
      [isLast ? 2 : 0, sender],
      [2, strangers.pop() ?? delegated],
    ]);
    const next = nonces.get(signer.address) ?? 0;
    const isWrong = random.chance(0.2);
    const nonce = isWrong ? next + 1 : next;
    const contractAddress = random.weighted<Hex>([
      [5, random.pick(contracts)],
      [1, zeroAddress],
      [1, random.pick(around.addresses)],
      [0.5, '0x0000000000000000000000000000000000000004'],
    ]);
    const chainId = random.weighted([
      [5, CHAIN_ID],
      [2, 0],
      [1, CHAIN_ID + 1],
    ]);
    const made = await signer.signAuthorization({ contractAddress, chainId, nonce });
    if (!isWrong && chainId !== CHAIN_ID + 1) nonces.set(signer.address, nonce + 1);
    const broken = random.weighted<object>([
      [8, {}],
      [0.5, { r: pad('0x00', { size: 32 }) }],
      // A high s, which is invalid although it verifies.
      [0.5, highS(made)],
    ]);
    list.push({ ...made, ...broken });
    if (Object.keys(broken).length > 0 && !isWrong && chainId !== CHAIN_ID + 1)
      nonces.set(signer.address, nonce);
  }
  return list;
}

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

function highS({ s, yParity }: { s: Hex; yParity?: number | undefined }): object {
  return { s: numberToHex(ORDER - BigInt(s), { size: 32 }), yParity: 1 - (yParity ?? 0) };
}
