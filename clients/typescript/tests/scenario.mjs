// What an app does, on Node and in a browser: import it with the package, and call it with a new user.
function countingFetch(counts) {
  return (url, init) => {
    if (url.endsWith('/api/token')) counts.refreshes += 1;
    return fetch(url, init);
  };
}

const reasonOf = (promise) =>
  promise.then(
    () => 'no error',
    (error) => error,
  );

/**
 * @param createClient the package's function
 * The second parameter has a user, the text of a PDF, and a record that the caller edits until the promise resolves.
 */
export async function scenario(createClient, { url, email, password, model, id, pdf }) {
  const counts = { refreshes: 0 };
  const values = new Map();
  const storage = {
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => void values.set(key, value),
    removeItem: (key) => void values.delete(key),
  };
  const options = { url, storage, fetch: countingFetch(counts) };
  const [platform, otherTab] = [createClient(options), createClient(options)];
  const result = { user: (await platform.login({ email, password })).user.email };

  const first = await platform.read(model, id);
  result.title = first.title;
  let listed = 0;
  for await (const record of platform.list('listContent', { model, view: 'summary', limit: 20 }))
    if (record.id <= 50) listed += 1;
  result.listed = listed;
  const { items, missing } = await platform.readMany(model, [2, 999_999, 1]);
  result.many = [items.map((record) => record.id), missing];

  const stop = new AbortController();
  result.followed = await reasonOf(
    (async () => {
      for await (const { changes } of platform.follow({
        models: [model],
        intervalMs: 100,
        signal: stop.signal,
      }))
        if (changes.some((change) => change.id === id && change.version > first.version)) stop.abort('seen');
    })(),
  );

  const file = await platform.upload(new Blob([pdf]), { name: 'a.pdf' });
  const original = await platform.request('readVariant', { id: file.id, variant: 'original' });
  result.uploaded = [file.mime, await original.text()];

  // A token that the platform refuses, for ten requests of each tab at the same time.
  for (const [key, text] of values) values.set(key, text.replace(/"token":"/, '"token":"x'));
  const calls = [platform, otherTab].flatMap((one) => Array.from({ length: 10 }, () => one.request('me')));
  result.parallel = new Set((await Promise.all(calls)).map((profile) => profile.email)).size;
  result.refreshes = counts.refreshes;

  result.aborted = await reasonOf(platform.read(model, id, { signal: AbortSignal.abort('enough') }));
  result.error = (await reasonOf(platform.read(model, 999_999))).code;
  await platform.logout();
  result.loggedIn = await otherTab.isLoggedIn();
  return result;
}
