// The form that asks for the password.

import { post } from "/console/api.js";
import { h, put } from "/console/dom.js";

export default function login(entered) {
  const field = h("input", { type: "password", name: "password", autocomplete: "current-password", required: true });
  const error = h("p", { class: "bad", role: "alert" });
  const go = h("button", { class: "main" }, "Log in");
  const form = h("form", { class: "body", method: "post", action: "/login" }, h("h1", {}, "Log in to this node"),
    h("p", { class: "soft" }, "The password of the node shows and changes everything; the read-only password only shows."),
    h("label", {}, "Password", field), error, go);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      await post("/login", { password: field.value });
      await entered();
    } catch (problem) {
      put(error, problem.detail);
      field.select();
    }
    go.disabled = false;
  });
  return h("div", { class: "card login" }, form);
}
