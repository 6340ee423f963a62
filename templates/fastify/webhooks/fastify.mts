import Fastify from 'fastify';
import { Webhook } from 'standardwebhooks';

const { WEBHOOK_SECRET, PORT = '3000' } = process.env;
if (WEBHOOK_SECRET === undefined)
  throw new Error('set WEBHOOK_SECRET to the secret of the endpoint, `whsec_…`');
const webhook = new Webhook(WEBHOOK_SECRET);

interface CustosEvent {
  readonly type: string;
}

/** What your service does about an event. It runs once for each event, unless it throws. */
async function handle(event: CustosEvent): Promise<void> {
  console.log(event.type);
}

/** The latest events that were handled. Several processes need a table instead. */
const handled = new Set<string>();

export const app = Fastify();

await app.register(async (endpoint) => {
  // The signature covers the bytes that arrived: within this plugin they are not parsed before.
  endpoint.removeAllContentTypeParsers();
  endpoint.addContentTypeParser('*', { parseAs: 'string' }, async (_request: unknown, body: unknown) => body);
  endpoint.post('/webhooks/custos', async (request, reply) => {
    const { 'webhook-id': id = '' } = request.headers as Record<string, string>;
    let event: CustosEvent;
    try {
      event = webhook.verify(
        request.body as string,
        request.headers as Record<string, string>,
      ) as CustosEvent;
    } catch {
      return reply.code(401).send();
    }
    if (!handled.has(id)) await handle(event);
    handled.add(id);
    if (handled.size > 10_000) handled.delete(handled.values().next().value as string);
    return reply.code(204).send();
  });
});

await app.listen({ port: Number(PORT) });
console.info(`listens on http://127.0.0.1:${PORT}/webhooks/custos`);
