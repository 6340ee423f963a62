import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { concatHex, encodeAbiParameters, type Hex, keccak256 } from 'viem';

/** The total amount that an account was given in a token. */
export interface GivenReward {
  readonly user: string;
  readonly token: string;
  readonly amount: bigint;
  readonly symbol?: string;
}

/** A Merkle tree of the form that Merkl uses, with sorted pairs of hashes. */
export function treeOf(given: readonly GivenReward[]): { root: Hex; proofOf(reward: GivenReward): Hex[] } {
  const levels = [given.map(leafOf)];
  for (let level = levels[0]!; level.length > 1; level = levels.at(-1)!) {
    const pairs = Array.from({ length: Math.ceil(level.length / 2) }, (_, index) =>
      level.slice(2 * index, 2 * index + 2),
    );
    levels.push(pairs.map((pair) => (pair.length === 1 ? pair[0]! : keccak256(concatHex(pair.toSorted())))));
  }
  return {
    root: levels.at(-1)![0]!,
    proofOf(reward) {
      let at = given.indexOf(reward);
      return levels.slice(0, -1).flatMap((level) => {
        const sibling = level[at ^ 1];
        at >>= 1;
        return sibling === undefined ? [] : [sibling];
      });
    },
  };
}

function leafOf({ user, token, amount }: GivenReward): Hex {
  const types = [{ type: 'address' }, { type: 'address' }, { type: 'uint256' }] as const;
  return keccak256(encodeAbiParameters(types, [user as Hex, token as Hex, amount]));
}

/** The response of Merkl's API v4 about a user, in its published format. */
export function answerAbout(user: string, chainId: number, given: readonly GivenReward[]): object[] {
  const { root, proofOf } = treeOf(given);
  const rewards = given
    .filter((reward) => reward.user.toLowerCase() === user.toLowerCase())
    .map((reward) => ({
      ...{ root, distributionChainId: chainId, recipient: reward.user },
      // The API may lag behind the chain.
      ...{ amount: String(reward.amount), claimed: '0', pending: '4273406001446877' },
      token: {
        ...{ address: reward.token, chainId, symbol: reward.symbol ?? 'RWD', decimals: 18 },
        ...{ displaySymbol: reward.symbol ?? 'RWD', icon: '', isTest: false, price: 0.37 },
      },
      proofs: proofOf(reward),
      breakdowns: [
        {
          reason: 'ERC20_0x81bA25F0',
          amount: String(reward.amount),
          claimed: '0',
          pending: '0',
          campaignId: root,
        },
      ],
    }));
  const chain = { id: chainId, name: 'Base', icon: 'https://example.com/base.svg', Explorer: [] };
  return [{ chain, rewards }];
}

/** A local replacement for Merkl's API. */
export interface MerklService extends AsyncDisposable {
  readonly url: string;
  /** The requested paths with their queries, in order, and the API key of each. */
  readonly asked: readonly { readonly path: string; readonly apiKey: string | undefined }[];
}

export type MerklAnswer = { readonly status?: number; readonly text: string } | 'silence';

export async function startMerkl(answer: (path: string) => MerklAnswer): Promise<MerklService> {
  const asked: { path: string; apiKey: string | undefined }[] = [];
  const server = createServer(({ url: path = '', headers }, response) => {
    asked.push({ path, apiKey: headers['x-api-key']?.toString() });
    const given = answer(path);
    if (given === 'silence') return;
    response.writeHead(given.status ?? 200, { 'content-type': 'application/json' });
    response.end(given.text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
