// A bare client: sends prepared requests to an API server, many at once, and does nothing else.
//
// Standard input holds one JSON line for each object: its requests, which are sent one after the other. Standard output
// gets one JSON line: how long that took, and how much processor time this process used for it.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

type request struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body"`
}

type client struct {
	http   *http.Client
	server string
	token  string
}

func main() {
	server := flag.String("server", "", "URL of the API server")
	ca := flag.String("ca", "", "file with its certificate authority")
	workers := flag.Int("workers", 16, "requests at once")
	flag.Parse()
	objects := read(os.Stdin)
	c := client{connect(*ca, *workers), *server, os.Getenv("TOKEN")}
	began, used := time.Now(), processorTime()
	c.sendAll(objects, *workers)
	took, cpu := time.Since(began).Seconds(), (processorTime() - used).Seconds()
	fmt.Printf("{\"seconds\": %f, \"cpu\": %f}\n", took, cpu)
}

func read(from io.Reader) [][]request {
	var objects [][]request
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var requests []request
		if err := json.Unmarshal(lines.Bytes(), &requests); err != nil {
			log.Fatal(err)
		}
		objects = append(objects, requests)
	}
	return objects
}

func connect(ca string, connections int) *http.Client {
	pem, err := os.ReadFile(ca)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	// HTTP/1.1, as the operator speaks it; one connection for each worker.
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots},
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
		MaxIdleConnsPerHost: connections,
		DisableCompression:  true,
	}
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

func (c client) sendAll(objects [][]request, workers int) {
	due := make(chan []request)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for requests := range due {
				for _, each := range requests {
					c.send(each)
				}
			}
		})
	}
	for _, requests := range objects {
		due <- requests
	}
	close(due)
	working.Wait()
}

func (c client) send(each request) {
	made, err := http.NewRequest(each.Method, c.server+each.Path, bytes.NewReader(each.Body))
	if err != nil {
		log.Fatal(err)
	}
	made.Header.Set("Authorization", "Bearer "+c.token)
	made.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(made)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		log.Fatal(each.Method, " ", each.Path, " ", answer.Status, " ", string(body), err)
	}
}

func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		log.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
