import { describe, expect, test } from 'vitest';
import { updateApp } from '../../../src/domain/access/apps/app.ts';
import { authorizeDevice } from '../../../src/domain/wallets/oauth/device-codes.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import { type DatabaseKind, databaseKinds } from '../../support/databases.ts';
import { openOperations } from '../../support/run-operations.ts';
import { inTransaction } from '../contexts.ts';

const refused = { status: 429, body: { code: 'too_many_requests' } };

/** An app whose devices wait for their users. */
async function openDeviceFlow(kind: DatabaseKind) {
  const operations = await openOperations(kind);
  const { database, services, clock, app } = operations;
  await database.orm.em.fork().transactional((em) => {
    const context = { ...services, em: em as OperationContext['em'], nowMs: clock.nowMs };
    const settings = { device_flow: { verification_uri: 'https://app.example.com/device' } };
    return updateApp(context, app.id, { settings });
  });
  const begin = (publicClientNetwork?: string) =>
    operations.run('authorizeOauthDevice', publicClientNetwork === undefined ? {} : { publicClientNetwork });
  return {
    clock,
    begin,
    async beginAll(count: number, networkOf: (index: number) => string | undefined): Promise<void> {
      for (let made = 0; made < count; made += 50) {
        const some = Array.from({ length: Math.min(50, count - made) }, (_, index) =>
          networkOf(made + index),
        );
        // By the verb, which takes a third of the time of an operation.
        await inTransaction(
          database,
          async (context) => {
            for (const publicClientNetwork of some) {
              await authorizeDevice({ ...context, proof: { ...context.proof, publicClientNetwork } });
            }
          },
          { appId: app.id, nowMs: clock.nowMs },
        );
      }
    },
    [Symbol.asyncDispose]: () => operations[Symbol.asyncDispose](),
  };
}

describe.each(databaseKinds)('on %s', (kind) => {
  test('clients without a secret behind one network address leave places to those of others', async () => {
    await using flow = await openDeviceFlow(kind);
    await flow.beginAll(25, () => '10.0.0.1');
    expect(await flow.begin('10.0.0.1')).toMatchObject(refused);
    expect(await flow.begin('10.0.0.2')).toMatchObject({ status: 200 });
    expect(await flow.begin()).toMatchObject({ status: 200 });
  });
});

test('an app has a thousand undecided codes, half of them of clients without a secret', async () => {
  await using flow = await openDeviceFlow('sqlite');
  await flow.beginAll(500, (index) => `10.0.0.${index % 20}`);
  expect(await flow.begin('10.0.1.1')).toMatchObject(refused);
  await flow.beginAll(500, () => undefined);
  expect(await flow.begin()).toMatchObject(refused);
  flow.clock.nowMs += 900_000;
  expect(await flow.begin('10.0.0.0')).toMatchObject({ status: 200 });
  expect(await flow.begin()).toMatchObject({ status: 200 });
});
