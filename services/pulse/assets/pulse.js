// Fetches the page every 5 seconds and exchanges the parts that have changed. Without it the page reloads itself.
const everyMs = 5_000;
const withinMs = 10_000;

/** Puts `next` in the place of `part`; what was scrolled or had the focus does so again. */
function exchange(part, next) {
  const focused = part.contains(document.activeElement) ? document.activeElement.id : '';
  const scrolled = [...part.querySelectorAll('.scroll')].map(({ id, scrollLeft }) => ({ id, scrollLeft }));
  part.replaceWith(next);
  for (const { id, scrollLeft } of scrolled) {
    const place = document.getElementById(id);
    if (place) place.scrollLeft = scrollLeft;
  }
  // What had it may be gone: then it stays near.
  const place = focused && (document.getElementById(focused) ?? next.querySelector('.scroll'));
  if (place) place.focus({ preventScroll: true });
}

/** Parts stay where they are: their number and order are always the same. */
function show(page) {
  document.title = page.title;
  for (const part of document.querySelectorAll('[data-part]')) {
    const next = page.getElementById(part.id);
    if (next && next.outerHTML !== part.outerHTML) exchange(part, next);
  }
}

async function refresh() {
  const stale = document.getElementById('stale');
  try {
    const response = await fetch(location.href, {
      headers: { Accept: 'text/html' },
      signal: AbortSignal.timeout(withinMs),
    });
    // Signed out: the form is at the same address.
    if (response.status === 401 || response.status === 403) return location.reload();
    if (!response.ok) throw new Error(response.statusText);
    show(new DOMParser().parseFromString(await response.text(), 'text/html'));
    stale.hidden = true;
  } catch {
    stale.hidden = false;
  }
  setTimeout(refresh, everyMs);
}

// What came of a retry is in the address, and a reload would tell it again.
history.replaceState(null, '', location.pathname);
setTimeout(refresh, everyMs);
