/** The databases that the running test file has borrowed. The files of a worker share this module. */
let borrowed: string[] = [];

/** Returns the URL of a new migrated PostgreSQL database without rows. It is dropped after the test file. */
export async function freshPostgres(): Promise<string> {
  const answer = await askDesk({ method: 'POST' });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`PostgreSQL could not be started: ${text}`);
  borrowed.push(text);
  return text;
}

/** Must be called at the end of a test file, when none of its databases is used anymore. */
export async function returnDatabases(): Promise<void> {
  if (borrowed.length === 0) return;
  const body = borrowed.join('\n');
  borrowed = [];
  await askDesk({ method: 'DELETE', body });
}

async function askDesk(request: { method: string; body?: string }): Promise<Response> {
  // Processes that a test starts load this module too, without vitest.
  const { inject } = await import('vitest');
  return fetch(inject('databaseDesk'), request);
}
