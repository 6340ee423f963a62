import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/adapters/runtime.ts';
import { anyAddress, createWebhookSender } from '../../../src/adapters/webhook-http.ts';
import { createWebhookEndpoint } from '../../../src/domain/access/webhooks/webhook-endpoint.ts';
import { recordEvent } from '../../../src/domain/base/events/events.ts';
import { deliverEvents } from '../../../src/jobs/deliver-events.ts';
import { startJobs } from '../../../src/jobs/runner.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { figureSize, noteFigure } from '../../figures/figure.ts';
import { pauseRecording } from '../../ledger/record-answers.ts';
import { databaseKinds, openTestDatabase } from '../../support/databases.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';
import { inTransaction, services } from '../contexts.ts';

// Endpoints that accept a connection and never answer hold it until the timeout. Those that work do not wait for them.
const hanging = figureSize({ short: 40, long: 200 });
const ENDPOINTS_OF_AN_APP = 20;
const EVENTS = 100;
/** Of `createDeliverySlots`: of each app, and in all. However much is due, the endpoints that hang have no more. */
const HELD = Math.min(96, 24 * Math.ceil(hanging / ENDPOINTS_OF_AN_APP));

pauseRecording();

test.each(databaseKinds)(
  `%s: two endpoints that work do not wait for ${hanging} that hang, which hold a bounded number of sockets`,
  async (kind) => {
    await using database = await openTestDatabase(kind);
    await using receiver = await startWebhookReceiver();
    const sockets = new Set<Socket>();
    const hole = createServer((socket) => void sockets.add(socket.on('error', () => undefined)));
    await new Promise<void>((resolve) => hole.listen(0, '127.0.0.1', resolve));
    const webhooks = createWebhookSender({ guard: anyAddress });
    const jobs = startJobs(
      [
        deliverEvents({
          services: { ...services, clock: systemClock, webhooks },
          inUnit: inUnitOf(unitsOf(database)),
          writePayload: (payload) => payload,
        }),
      ],
      services.log,
    );
    try {
      const { port } = hole.address() as AddressInfo;
      const apps = Array.from({ length: Math.ceil(hanging / ENDPOINTS_OF_AN_APP) }, (_, at) => `app-${at}`);
      for (let at = 0; at < hanging; at += 1)
        await inTransaction(
          database,
          (context) => createWebhookEndpoint(context, { url: `http://127.0.0.1:${port}/${at}` }),
          { appId: apps[at % apps.length]! },
        );
      for (const path of ['one', 'two'])
        await inTransaction(
          database,
          (context) => createWebhookEndpoint(context, { url: `${receiver.url}${path}` }),
          { appId: 'acme' },
        );
      const record = (appId: string, number: number) =>
        inTransaction(
          database,
          (context) =>
            recordEvent(context, {
              ...{ appId, type: 'wallet.restored' },
              payload: { wallet_id: `wallet-${number}`, wallet_address: '0x', chain_type: 'ethereum' },
            }),
          { appId },
        );
      for (const appId of apps) for (let number = 0; number < 10; number += 1) await record(appId, number);
      jobs.wake('deliver-events');
      while (sockets.size < HELD) await new Promise((resolve) => setTimeout(resolve, 20));

      const beganMs = performance.now();
      for (let number = 1; number <= EVENTS; number += 1) await record('acme', number);
      jobs.wake('deliver-events');
      await receiver.count(2 * EVENTS);
      const ms = Math.round(performance.now() - beganMs);
      expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(EVENTS);
      // Those that hang still do: nothing was given up for the others.
      expect(sockets.size).toBe(HELD);
      noteFigure({ database: kind, hanging, events: EVENTS, ms });
    } finally {
      for (const socket of sockets) socket.destroy();
      await webhooks.close();
      await jobs.stop();
      hole.close();
    }
  },
  90_000,
);
