import {
  decodeFunctionData,
  encodeAbiParameters,
  encodeFunctionResult,
  type Hex,
  hexToBytes,
  parseAbi,
  zeroHash,
} from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { merklRewards } from '../../../src/adapters/rewards.ts';
import type { AnyChain } from '../../../src/ports/chains.ts';
import {
  answerAbout,
  type GivenReward,
  type MerklAnswer,
  type MerklService,
  startMerkl,
  treeOf,
} from '../../support/nodes/merkl-service.ts';

const caip2 = 'eip155:8453';
const distributor = '0x3Ef3D8bA38EBe18DB133cEc108f4D14CE00Dd9Ae';
const user = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const other = '0x59c1d1EA3E1a58dEC20883375B4c36DD348CE777';
const token = '0x6f470988d35CD75390B4CA8Aee1a922f1BDbE9E7';
const second = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const abi = parseAbi([
  'function getMerkleRoot() view returns (bytes32)',
  'function claimed(address user, address token) view returns (uint208, uint48, bytes32)',
]);

const given: readonly GivenReward[] = [
  { user, token, amount: 14_172_098_606_012_883_675n },
  { user: other, token, amount: 5n },
  { user, token: second, amount: 7n, symbol: 'USDC' },
];

let service: MerklService;
let answer: (path: string) => MerklAnswer;
/** What the contract says. */
let root: Hex;
let claimed: Map<string, bigint>;
const read: string[] = [];

beforeEach(async () => {
  answer = () => text(answerAbout(user, 8453, given));
  root = treeOf(given).root;
  claimed = new Map();
  read.length = 0;
  service = await startMerkl((path) => answer(path));
});
afterEach(() => service[Symbol.asyncDispose]());

const text = (value: unknown, status = 200) => ({ status, text: JSON.stringify(value) });

const chain = {
  ...{ kind: 'evm', caip2, chainId: 8453n },
  async read({ to, data }: { to: string; data: Uint8Array }) {
    read.push(to);
    const call = decodeFunctionData({ abi, data: `0x${Buffer.from(data).toString('hex')}` });
    if (call.functionName === 'getMerkleRoot')
      return hexToBytes(encodeFunctionResult({ abi, functionName: 'getMerkleRoot', result: root }));
    const [who, what] = call.args;
    const amount = who.toLowerCase() === user.toLowerCase() ? (claimed.get(what.toLowerCase()) ?? 0n) : 0n;
    const types = [{ type: 'uint208' }, { type: 'uint48' }, { type: 'bytes32' }] as const;
    return hexToBytes(encodeAbiParameters(types, [amount, 0, zeroHash]));
  },
} as unknown as AnyChain;

const connect = (apiKey?: string) =>
  merklRewards({
    chains: { find: (id) => (id === caip2 ? chain : undefined) },
    ...{ log: silentLog, url: service.url, apiKey, distributors: new Map([[caip2, distributor]]) },
  });

describe('rewards by Merkl', () => {
  test('rewards by Merkl are what the API proves and the distributor has not paid', async () => {
    claimed.set(token.toLowerCase(), 10_951_906_851_596_507_470n);
    const found = await connect('key-of-acme').rewards(caip2, user);
    const { proofOf } = treeOf(given);
    expect(found).toEqual({
      distributor,
      rewards: [
        {
          ...{ tokenAddress: token, symbol: 'RWD', decimals: 18, proof: proofOf(given[0]!) },
          ...{ rawCumulative: 14_172_098_606_012_883_675n, rawClaimed: 10_951_906_851_596_507_470n },
        },
        {
          ...{ tokenAddress: second, symbol: 'USDC', decimals: 18, proof: proofOf(given[2]!) },
          ...{ rawCumulative: 7n, rawClaimed: 0n },
        },
      ],
    });
    expect(service.asked).toEqual([
      { path: `/v4/users/${user}/rewards?chainId=8453`, apiKey: 'key-of-acme' },
    ]);
    expect(new Set(read)).toEqual(new Set([distributor]));
  });

  test('without a proof for the root of the distributor count as claimed so far, or not at all', async () => {
    claimed.set(token.toLowerCase(), 9n);
    const greedy = given.map((reward) => ({ ...reward, amount: reward.amount * 1000n }));
    answer = () => text(answerAbout(user, 8453, greedy));
    const found = await connect().rewards(caip2, user);
    expect(found?.rewards).toMatchObject([{ tokenAddress: token, rawCumulative: 9n, rawClaimed: 9n }]);
    root = zeroHash;
    answer = () => text(answerAbout(user, 8453, given));
    expect((await connect().rewards(caip2, user))?.rewards).toMatchObject([{ rawCumulative: 9n }]);
    expect(service.asked[0]?.apiKey).toBeUndefined();
  });

  test('of other chains and of other users, malformed and repeated ones are left out', async () => {
    const [{ rewards }] = answerAbout(user, 8453, given) as [{ rewards: Record<string, unknown>[] }];
    const [first] = rewards as [Record<string, unknown> & { token: object; proofs: string[] }];
    const strange = [
      { ...first, amount: '-1' },
      { ...first, amount: 5 },
      { ...first, amount: '9'.repeat(64) },
      { ...first, proofs: null },
      { ...first, proofs: ['0x12'] },
      { ...first, proofs: Array.from({ length: 65 }, () => root) },
      { ...first, token: { ...first.token, address: '0x12' } },
      ...[null, 7, {}, []],
      first,
      first,
      ...(answerAbout(other, 8453, given) as { rewards: object[] }[])[0]!.rewards,
    ];
    answer = () =>
      text([
        ...answerAbout(user, 1, given),
        null,
        { chain: { id: 8453 }, rewards: strange },
        { chain: null },
      ]);
    const found = await connect().rewards(caip2, user);
    expect(found?.rewards.map(({ rawCumulative }) => rawCumulative)).toEqual([given[0]?.amount]);
  });

  test('rewards by Merkl have symbols that are short and printable, and decimals that exist', async () => {
    const [entry] = answerAbout(user, 8453, given) as [{ rewards: { token: object }[] }];
    const rewards = entry.rewards.map((reward) => ({
      ...reward,
      token: { ...reward.token, symbol: 'A\nB', decimals: 1e9 },
    }));
    answer = () => text([{ ...entry, rewards }]);
    const found = await connect().rewards(caip2, user);
    expect(found?.rewards[0]).toMatchObject({ symbol: token.slice(0, 8), decimals: 18 });
  });

  test('rewards by Merkl are bounded in number', async () => {
    const many = Array.from({ length: 80 }, (_, index) => ({
      ...{ user, token: `0x${(index + 1).toString(16).padStart(40, '0')}`, amount: 1n },
    }));
    root = treeOf(many).root;
    answer = () => text(answerAbout(user, 8453, many));
    expect((await connect().rewards(caip2, user))?.rewards).toHaveLength(50);
  });

  test('exist only on chains with a distributor', async () => {
    expect(await connect().rewards('eip155:1', user)).toBeUndefined();
    expect(service.asked).toEqual([]);
  });
});

describe('without a usable answer', () => {
  test.each([
    ['status 500', { status: 500, text: '[]' }, 'expected status 200, got 500'],
    ['too many requests', { status: 429, text: '{}' }, 'expected status 200, got 429'],
    ['a redirect', { status: 302, text: '' }, 'no connection'],
    ['no JSON', { text: '<html>' }, 'expected a list of chains with rewards'],
    ['an object', { text: '{"rewards":[]}' }, 'expected a list of chains with rewards'],
    ['a large answer', { text: `[${' '.repeat(2 * 1024 * 1024)}]` }, 'expected a response of at most'],
  ])('%s is an outage, not a wallet without rewards', async (_, given, message) => {
    answer = () => given;
    const failure = await connect('secret-key')
      .rewards(caip2, user)
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ isUnavailable: true, message: expect.stringContaining(message) });
    expect(JSON.stringify([failure, String(failure)])).not.toContain('secret-key');
  });

  test('a contract that is no distributor is an outage, too', async () => {
    const plain = { ...chain, read: async () => new Uint8Array() } as AnyChain;
    const rewards = merklRewards({
      ...{ chains: { find: () => plain }, log: silentLog, url: service.url, apiKey: undefined },
      distributors: new Map([[caip2, distributor]]),
    });
    await expect(rewards.rewards(caip2, user)).rejects.toThrow('expected a reward distributor at');
  });

  test('the API is skipped for a while after repeated failures', async () => {
    answer = () => ({ status: 503, text: '' });
    const rewards = connect();
    for (let time = 0; time < 5; time += 1) await rewards.rewards(caip2, user).catch(() => undefined);
    answer = () => text(answerAbout(user, 8453, given));
    await expect(rewards.rewards(caip2, user)).rejects.toThrow('skipped after repeated failures');
    expect(service.asked).toHaveLength(5);
  });
});
