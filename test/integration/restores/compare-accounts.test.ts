import type { SqlEntityManager } from '@mikro-orm/sql';
import { expect, test } from 'vitest';
import { compareAccounts } from '../../../src/admin/restored.ts';
import type { Chains } from '../../../src/ports/chains.ts';
import { openOperations } from '../../support/run-operations.ts';

test('a chain whose nodes are away is given up, and the others are compared to the end', async () => {
  await using operations = await openOperations('sqlite');
  const body = { wallets: Array.from({ length: 60 }, () => ({ chain_type: 'ethereum' as const })) };
  expect((await operations.run('createWalletsBatch', { body })).status).toBe(200);
  const [away, here] = ['eip155:1', 'eip155:8453'];
  const asked: string[] = [];
  const chain = (caip2: string) => ({
    ...{ kind: 'evm', caip2 },
    async nonce(): Promise<bigint> {
      asked.push(caip2);
      if (caip2 === away) throw new Error('no answer');
      return 3n;
    },
  });
  const chains = { find: chain } as unknown as Chains;
  const em = operations.database.orm.em.fork() as SqlEntityManager;
  const compared = await compareAccounts(em, { chains, caip2s: [away, here], onProgress: () => undefined });

  expect(asked.filter((caip2) => caip2 === away).length).toBeLessThan(50);
  expect(compared.unanswered).toContain(away);
  expect(compared.ahead.filter(({ account }) => account.startsWith(`${here}:`))).toHaveLength(60);
});
