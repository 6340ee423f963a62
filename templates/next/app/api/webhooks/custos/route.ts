import { Webhook } from 'standardwebhooks';

interface CustosEvent {
  readonly type: string;
}

/** What your service does about an event. It runs once for each event, unless it throws. */
async function handle(event: CustosEvent): Promise<void> {
  console.log(event.type);
}

/** The latest events that were handled. Several processes need a table instead. */
const handled = new Set<string>();

/** `POST /api/webhooks/custos`. Set `WEBHOOK_SECRET` to the secret of the endpoint, `whsec_…`. */
export async function POST(request: Request): Promise<Response> {
  const id = request.headers.get('webhook-id') ?? '';
  let event: CustosEvent;
  try {
    const webhook = new Webhook(process.env.WEBHOOK_SECRET ?? '');
    event = webhook.verify(await request.text(), Object.fromEntries(request.headers)) as CustosEvent;
  } catch {
    return new Response(null, { status: 401 });
  }
  if (!handled.has(id)) await handle(event);
  handled.add(id);
  if (handled.size > 10_000) handled.delete(handled.values().next().value as string);
  return new Response(null, { status: 204 });
}
