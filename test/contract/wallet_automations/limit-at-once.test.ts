import { expect, test } from 'vitest';
import { AutomationEntity } from '../../../src/domain/access/automations/automation.entity.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations } from '../../support/run-operations.ts';

const action = { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } };
const input = {
  body: { owner_id: null, config: { trigger: { type: 'deposit', assets: { mode: 'all' } }, action } },
};

test.each(databaseKinds)('of four automations created at once, one is the hundredth: %s', async (kind) => {
  await using operations = await openOperations(kind, { poolSize: 5 });
  const create = async () => (await operations.run('createWalletAutomation', input)).status;
  expect(await create()).toBe(200);
  const em = operations.database.orm.em.fork();
  const [first] = await em.find(AutomationEntity, {});
  await em.insertMany(
    AutomationEntity,
    Array.from({ length: 98 }, (_, index) => ({ ...first!, id: `copy-${index}` })),
  );
  // Connections are opened when they are first needed, and that takes longer than a request.
  const wait = () => operations.database.orm.em.fork().execute('select pg_sleep(0.1)');
  if (kind === 'postgres') await Promise.all([wait(), wait(), wait(), wait()]);
  const statuses = await Promise.all([create(), create(), create(), create()]);
  expect(statuses.sort()).toEqual([200, 400, 400, 400]);
});
