import { findApp } from '../../domain/access/apps/find-app.ts';
import type { FiatEntity } from '../../domain/money/fiat-customers/fiat-entity.ts';
import { askForLinks, storeCustomer } from '../../domain/money/fiat-customers/verify-customer.ts';
import { invalidField } from '../../errors.ts';
import type { ControlInput, Handler } from '../control-plane.ts';
import { refreshCustomer } from '../refresh-customer.ts';

type Body = ControlInput<'decideVerification'>['body'];

// The contact of a customer that a tester verifies; the simulated office stores none.
const EMAIL = 'customer@example.com';

export const run: Handler<'decideVerification'> = async ({ body }, context) => {
  const { clock, fiat, fiatProviders, appId, runDueJobs } = context;
  const entity = entityOf(body);
  const nowMs = clock.now();
  const app = await context.read((em) => findApp(em, body.app_id ?? appId));
  const input = { provider: 'bridge', environment: body.environment, links: [] };
  const readContact = async () => ({ email: EMAIL });
  const asked = await context.read((em) =>
    askForLinks({ app, em, fiatProviders }, entity, { input, readContact }),
  );
  const known = await context.change((em) => storeCustomer({ ...context, app, em, nowMs }, asked));
  await fiat.decide(known.environment, known.customerId, {
    ...{ outcome: body.outcome, reasons: body.reasons },
    ...{ requirementsDue: body.requirements_due, endorsements: body.endorsements },
  });
  const stored = await refreshCustomer(context, known);
  await runDueJobs();
  return {
    entity_id: stored.entityId,
    provider: stored.provider,
    environment: stored.environment,
    customer_id: stored.customerId,
    status: stored.snapshot.status,
  };
};

function entityOf({ user_id: userId, organization_id: organizationId }: Body): FiatEntity {
  if ((userId === undefined) === (organizationId === undefined)) {
    throw invalidField('/user_id', 'expected either `user_id` or `organization_id`');
  }
  return userId === undefined ? { type: 'organization', id: organizationId! } : { type: 'user', id: userId };
}
